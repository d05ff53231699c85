#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>

#include "estimator/base/document.h"
#include "estimator/base/errors.h"
#include "estimator/base/files.h"
#include "estimator/base/machine_share.h"
#include "estimator/base/range.h"
#include "estimator/plan/quantization.h"
#include "sim/cli/commands/commands.h"
#include "sim/cli/commands/report_output.h"
#include "sim/cli/input/launched_world.h"
#include "sim/cli/input/plan_options.h"
#include "sim/cli/input/table_format_flag.h"
#include "sim/cli/process/output.h"
#include "sim/cli/ranks/rank_program.h"
#include "sim/cli/report/plan_report.h"
#include "sim/cli/report/verify_memory.h"
#include "sim/cli/report/verify_report.h"
#include "sim/cli/values/strict_number.h"

namespace sim {
namespace {

using estimator::ExitCode;
using estimator::Plan;
using estimator::UserError;

struct VerifyOptions {
  PlanOptions plan;
  std::string join_timeout = "60";
  std::string timeout = "300";
  TableFormatFlag format;
};

/// The plan is good by itself but for another world than the one that was started.
[[noreturn]] void throw_wrong_world(const LaunchedWorld& world, const Plan& plan) {
  throw UserError({.what = fmt::format("rank {}: the world has {} ranks, the plan needs {}",
                                       world.rank,
                                       world.size,
                                       plan.world_size()),
                   .where = to_text(world),
                   .help = fmt::format("start {} ranks, or change the plan", plan.world_size())},
                  ExitCode::kMachineLacks);
}

/// In a launched world its size is the plan's WORLD_SIZE.
PlanInput resolve_for(const std::optional<LaunchedWorld>& world,
                      const PlanOptions& options,
                      Environment environment) {
  if (!world) return options.resolve(environment);
  environment[kWorldSizeVariable] = std::to_string(world->size);
  try {
    return options.resolve(environment);
  } catch (const UserError&) {
    environment.erase(kWorldSizeVariable);
    throw_wrong_world(*world, options.resolve(environment).plan);  // or what else is wrong with it
  }
}

std::string seconds(const std::string& text, const char* flag) {
  const int64_t value = parse_whole_number(text, flag);
  estimator::require_in_range(value, {1, 86'400, "seconds"}, flag);
  return std::to_string(value);
}

std::vector<std::string> rank_arguments(const VerifyOptions& options,
                                        const std::optional<LaunchedWorld>& world,
                                        const RankProgram& program) {
  std::vector<std::string> arguments = {"verify",
                                        "--plan",
                                        program.plan_file().string(),
                                        "--output-dir",
                                        program.folder().string(),
                                        "--join-timeout",
                                        seconds(options.join_timeout, "--join-timeout"),
                                        "--timeout",
                                        seconds(options.timeout, "--timeout")};
  if (!world) return arguments;
  for (const std::string& argument : {std::string("--rank"),
                                      std::to_string(world->rank),
                                      std::string("--world-size"),
                                      std::to_string(world->size),
                                      std::string("--master-addr"),
                                      world->host,
                                      std::string("--master-port"),
                                      std::to_string(world->port),
                                      std::string("--store-prefix"),
                                      world->store_prefix}) {
    arguments.push_back(argument);
  }
  if (world->keeps_store) arguments.emplace_back("--keep-store");
  return arguments;
}

/// What rank 0 wrote.
Verification read_verification(const RankProgram& program) {
  const std::string path = (program.folder() / "verification.json").string();
  return estimator::read_written<Verification>(
      estimator::read_file(path), path, "run `onerank verify` again");
}

/// Between chunks a message is held until its receiver asks for it, which the stub does at once:
/// the numbers and the collectives are the same, the bytes held at a peak are not.
void refuse_virtual_stages(const estimator::Plan& plan) {
  if (plan.parallelism.virtual_stages == 1) return;
  throw estimator::UserError(
      {.what = "verify does not compare interleaved stages yet",
       .where = fmt::format("parallelism.virtual_stages = {}", plan.parallelism.virtual_stages),
       .help = "use parallelism.virtual_stages = 1"});
}

/// Each layout rounds other parts of a matrix to 8 or 4 bits, by three or one of mantissa: no
/// tolerance would tell this from a mistake.
void refuse_quantization(const estimator::Plan& plan) {
  if (!estimator::quantizes(plan.training)) return;
  throw estimator::UserError(
      {.what = fmt::format("verify does not compare products in {} bits",
                           estimator::quantization_of(plan.training).bits),
       .where = estimator::quantized_format(plan.training),
       .help = "leave the format out: the layers are the same in 16 and in 32 bits"});
}

void print(const Verification& verification, const PlanInput& input, const ReportStyle& style) {
  if (style.format == TableFormat::kJson) {
    write_to_standard_output(estimator::document_text(verification));
  } else if (style.format != TableFormat::kText) {
    write_to_standard_output(verification_table(verification).in(style));
  } else {
    write_to_standard_output(plan_text(input) + "\n" + verification_text(verification));
  }
}

ExitCode run_verify(const VerifyOptions& options, const Environment& environment) {
  const ReportStyle style = style_for_output(options.format.format());
  const auto world = find_launched_world(environment);
  if (world) write_to_standard_error(to_text(*world) + "\n");
  const PlanInput input = resolve_for(world, options.plan, environment);
  refuse_virtual_stages(input.plan);
  refuse_quantization(input.plan);
  const int64_t available_bytes = estimator::machine_share().memory_bytes;
  if (!world && available_bytes > 0) require_memory_for_verification(input.plan, available_bytes);
  const estimator::ModelConfig& model = input.plan.model;
  const bool is_first = !world || world->rank == 0;
  if (is_first && model.hidden_dropout + model.attention_dropout > 0) {
    write_to_standard_error("note: dropout is off here: its masks depend on the layout\n");
  }
  const RankProgram program(input.plan, estimator::DeviceKind::kCpu, environment);
  const int exit_code = program.run(rank_arguments(options, world, program),
                                    {.on_output_line = [](std::string_view) {}, .on_tick = [] {}});
  if (is_first) print(read_verification(program), input, style);
  return static_cast<ExitCode>(exit_code);
}

}  // namespace

Command add_verify_command(CLI::App& root) {
  CLI::App* app = root.add_subcommand("verify",
                                      "compare real ranks over Gloo with the stub and with the "
                                      "whole model (exit code 4: different)");
  const auto options = std::make_shared<VerifyOptions>();
  app->add_option("--join-timeout",
                  options->join_timeout,
                  "seconds to wait until every rank has joined (60)")
      ->type_name("SECONDS")
      ->group("Execution");
  app->add_option("--timeout", options->timeout, "seconds for one collective (300)")
      ->type_name("SECONDS")
      ->group("Execution");
  options->format.add_to(*app);
  options->plan.add_to(*app);
  return {app,
          [options](const Environment& environment) { return run_verify(*options, environment); }};
}

}  // namespace sim
