#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "estimator/base/fields.h"
#include "estimator/base/files.h"
#include "sim/cli/commands/commands.h"
#include "sim/cli/input/plan_options.h"
#include "sim/cli/process/output.h"

namespace sim {
namespace {

using estimator::ExitCode;

struct ImportOptions {
  PlanOptions plan;
  std::string output;
};

ExitCode run_import(const ImportOptions& options, const Environment& environment) {
  if (!options.plan.has_file()) {
    throw estimator::UserError({.what = "no file to import",
                                .where = "onerank import",
                                .help = "give a script that starts Megatron-LM, a configuration of "
                                        "another program, or the config.json of a model"});
  }
  const PlanOptions::WrittenPlan plan = options.plan.written(environment);
  const std::string text = plan.tree.json().dump(2) + "\n";
  write_to_standard_error(plan.lines);
  if (options.output.empty()) {
    write_to_standard_output(text);
  } else {
    estimator::write_file_whole(options.output, text);
  }
  return ExitCode::kDone;
}

}  // namespace

Command add_import_command(CLI::App& root) {
  CLI::App* app = root.add_subcommand(
      "import",
      "write the plan that another program's file means: scripts and arguments of Megatron-LM and "
      "of transformers' Trainer, "
      "configurations of TorchTitan, DeepSpeed, accelerate, nanotron and GPT-NeoX, and a model's "
      "config.json");
  const auto options = std::make_shared<ImportOptions>();
  app->add_option("-o,--output", options->output, "write the plan into this file")
      ->type_name("FILE")
      ->group("Output");
  options->plan.add_to(*app);
  return {app,
          [options](const Environment& environment) { return run_import(*options, environment); }};
}

}  // namespace sim
