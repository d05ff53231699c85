#include <memory>

#include "estimator/cluster/schema.h"
#include "sim/cli/commands/commands.h"
#include "sim/cli/output.h"

namespace sim {
namespace {

using estimator::ExitCode;

struct Document {
  std::string name;
  estimator::Json (*schema)();
};

const std::vector<Document>& documents() {
  static const std::vector<Document> all = {{"plan", estimator::plan_schema},
                                            {"profile", estimator::rank_profile_schema},
                                            {"estimate", estimator::cluster_estimate_schema}};
  return all;
}

ExitCode print_schema(const std::string& name) {
  std::vector<std::string> known;
  for (const Document& document : documents()) {
    known.push_back(document.name);
    if (document.name != name) continue;
    write_to_standard_output(document.schema().dump(1) + "\n");
    return ExitCode::kDone;
  }
  throw estimator::UserError({.what = name.empty() ? "the schema of what?" : "unknown document",
                              .where = "schema \"" + name + "\"",
                              .help = estimator::suggestion(name, known)});
}

}  // namespace

Command add_schema_command(CLI::App& root) {
  CLI::App* app = root.add_subcommand("schema", "the JSON Schema of a document");
  const auto name = std::make_shared<std::string>();
  app->add_option("DOCUMENT", *name, "plan, profile or estimate")->type_name("");
  return {app, [name](const Environment&) { return print_schema(*name); }};
}

}  // namespace sim
