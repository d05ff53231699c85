#include "sim/cli/input/program_flags.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "estimator/base/fields.h"
#include "estimator/base/range.h"
#include "estimator/plan/cluster_options.h"
#include "estimator/plan/reliability_options.h"
#include "estimator/plan/training_options.h"
#include "sim/cli/values/strict_number.h"

namespace sim {
namespace {

using estimator::Problem;
using estimator::ProgramRun;
using estimator::UserError;

constexpr const char* kTokensPerStep = "--tokens-per-step";
constexpr const char* kMeasuredStep = "--measured-step";

/// The sections of a plan of which something is said.
struct SaidSections {
  estimator::TrainingConfig training;
  estimator::ClusterConfig cluster;
  estimator::ReliabilityConfig reliability;
};
template <class Visitor>
void visit_fields(Visitor& visit, SaidSections& said) {
  visit("training", said.training, "how it is trained");
  visit("cluster", said.cluster, "the machines");
  visit("reliability", said.reliability, "failures and checkpoints");
}

SaidSections read_sections(const PlanFlags& flags) {
  estimator::Json tree = estimator::Json::object();
  flags.overlay(tree);
  SaidSections said;
  estimator::FieldReader reader("command line");
  reader.read(tree, said, "");
  try {
    reader.throw_if_any();
  } catch (const UserError& error) {
    std::vector<Problem> problems = error.problems();
    for (Problem& problem : problems) problem.where = flags.with_flag_names(problem.where);
    throw UserError(std::move(problems), error.exit_code());
  }
  return said;
}

std::optional<int64_t> value_of(const estimator::Auto<int64_t>& number) {
  return number.is_known() ? std::optional(number.value()) : std::nullopt;
}

}  // namespace

const std::vector<std::string>& keys_of_programs() {
  static const std::vector<std::string> keys = {"training.global_batch_size",
                                                "training.sequence_length",
                                                "training.steps",
                                                "training.tokens",
                                                "cluster.gpu_deviation",
                                                "cluster.usd_per_gpu_hour",
                                                "reliability.gpu_hours_between_failures",
                                                "reliability.restart_seconds",
                                                "reliability.checkpoint_seconds",
                                                "reliability.save_interval"};
  return keys;
}

void MeasuredStepFlag::add_to(CLI::App& app) {
  app.add_option(kMeasuredStep,
                 text_,
                 "seconds of one measured iteration: throughput, training, cost and what advice "
                 "saves are scaled by measured / estimated")
      ->type_name("SECONDS")
      ->group("Time");
}

std::optional<double> MeasuredStepFlag::seconds() const {
  if (text_.empty()) return std::nullopt;
  const double seconds = parse_real_number(text_, kMeasuredStep);
  estimator::require_in_range(seconds, {1e-6, 1e6, "the seconds of one iteration"}, kMeasuredStep);
  return seconds;
}

void ProgramFlags::add_to(CLI::App& app) {
  app_ = &app;
  app.add_option(kTokensPerStep,
                 tokens_per_step_,
                 "tokens on which all ranks of a program train in a step (default: found in its "
                 "trace)")
      ->type_name("N")
      ->group("Training");
}

std::vector<std::string> ProgramFlags::given() const {
  std::vector<std::string> names;
  if (app_ != nullptr && app_->count(kTokensPerStep) > 0) names.emplace_back(kTokensPerStep);
  return names;
}

ProgramRun ProgramFlags::run(const PlanFlags& plan_flags) const {
  const SaidSections said = read_sections(plan_flags);
  ProgramRun run{.global_batch_size = value_of(said.training.global_batch_size),
                 .sequence_length = value_of(said.training.sequence_length),
                 .steps = said.training.steps,
                 .tokens = said.training.tokens,
                 .reliability = said.reliability,
                 .usd_per_gpu_hour = said.cluster.usd_per_gpu_hour,
                 .gpu_deviation = said.cluster.gpu_deviation};
  if (any_given()) {
    run.tokens_per_step = parse_positive_number(tokens_per_step_, kTokensPerStep);
  }
  static_cast<void>(run.said_tokens());  // contradictions are told before anything is run
  return run;
}

}  // namespace sim
