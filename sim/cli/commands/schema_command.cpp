#include <CLI/CLI.hpp>
#include <memory>

#include "estimator/cluster/roofline.h"
#include "estimator/cluster/schema.h"
#include "estimator/program/program_estimate.h"
#include "estimator/what_if/max_micro_batch.h"
#include "estimator/what_if/max_sequence.h"
#include "estimator/what_if/search_result.h"
#include "estimator/what_if/sweep.h"
#include "sim/cli/commands/commands.h"
#include "sim/cli/commands/list_documents.h"
#include "sim/cli/commands/named_choice.h"
#include "sim/cli/process/output.h"
#include "sim/cli/report/comm_report.h"
#include "sim/cli/report/diff_report.h"
#include "sim/cli/report/documents.h"
#include "sim/verify/verification.h"

namespace sim {
namespace {

using estimator::ExitCode;

struct Document {
  std::string name;
  estimator::Json (*schema)();
};

template <class T>
estimator::Json schema_of_document() {
  return estimator::document_schema<T>("Onerank " + T{}.head.kind);
}

template <auto list>
estimator::Json schema_of_list() {
  return estimator::document_schema("Onerank " + list().head.kind, list());
}

/// Every document that Onerank reads or writes.
const std::vector<Document>& documents() {
  static const std::vector<Document> all = {
      {"plan", estimator::plan_schema},
      {"profile", schema_of_document<estimator::RankProfile>},
      {"estimate", schema_of_document<estimator::ClusterEstimate>},
      {"program-estimate", schema_of_document<estimator::ProgramEstimate>},
      {"verdict", schema_of_document<VerdictDocument>},
      {"verdicts", schema_of_document<CheckedPlans>},
      {"error", schema_of_document<estimator::ErrorDocument>},
      {"max-micro-batch", schema_of_document<estimator::MaxMicroBatch>},
      {"max-sequence", schema_of_document<estimator::MaxSequence>},
      {"roofline", schema_of_document<estimator::Roofline>},
      {"calibration", schema_of_document<estimator::Calibration>},
      {"verification", schema_of_document<Verification>},
      {"peak-snapshot", estimator::peak_snapshot_schema},
      {"memory", schema_of_document<MemoryGroups>},
      {"search", schema_of_document<estimator::Search>},
      {"sweep", schema_of_document<estimator::Sweep>},
      {"diff", schema_of_document<EstimateDiff>},
      {"allocators", schema_of_document<AllocatorComparison>},
      {"comm", schema_of_document<CommReport>},
      {"gpus", schema_of_list<gpu_list>},
      {"models", schema_of_list<model_list>},
      {"links", schema_of_list<link_list>},
      {"frameworks", schema_of_list<framework_list>},
      {"options", schema_of_list<option_list>},
      {"example-plans", schema_of_list<plan_list>},
      {"torch", schema_of_list<torch_list>}};
  return all;
}

ExitCode print_schema(const std::string& name) {
  const Document& document =
      named_choice(documents(), name, {"schema", "the schema of what?", "unknown document"});
  write_to_standard_output(estimator::document_text(document.schema()));
  return ExitCode::kDone;
}

}  // namespace

Command add_schema_command(CLI::App& root) {
  CLI::App* app = root.add_subcommand("schema", "the JSON Schema of a document");
  const auto name = std::make_shared<std::string>();
  CLI::Option* document =
      app->add_option("DOCUMENT", *name, "plan, profile, estimate, verdict, roofline, ...");
  offer(document->type_name(""), names_of_rows(documents()));
  return {app, [name](const Environment&) { return print_schema(*name); }};
}

}  // namespace sim
