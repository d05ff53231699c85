#include "estimator/cluster/training_estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "estimator/base/database.h"
#include "estimator/base/errors.h"
#include "estimator/base/units.h"
#include "estimator/cluster/goodput.h"

namespace onerank_data {
extern const std::string_view reliability_json;
}

namespace estimator {
namespace {

/// What is taken where the plan says nothing.
struct ReliabilityDefaults {
  TaggedNumber gpu_hours_between_failures, restart_seconds, checkpoint_seconds;
};
template <class Visitor>
void visit_fields(Visitor& visit, ReliabilityDefaults& defaults) {
  visit("gpu_hours_between_failures", defaults.gpu_hours_between_failures, "of the job x its GPUs");
  visit("restart_seconds", defaults.restart_seconds, "from a failure to training again");
  visit("checkpoint_seconds", defaults.checkpoint_seconds, "standing still for one");
}

const ReliabilityDefaults& defaults() {
  static const auto document =
      read_document<ReliabilityDefaults>(onerank_data::reliability_json, "reliability.json");
  return document;
}

/// The given price alone, or every published one of the GPU, cheapest first.
std::vector<TrainingCost> costs_of(const TrainingRun& run, const Gpu& gpu, double gpu_hours) {
  if (run.usd_per_gpu_hour) {
    const double price = *run.usd_per_gpu_hour;
    return {{gpu_hours * price, price, Source::kGiven, run.said_by, "", ""}};
  }
  std::vector<TrainingCost> costs;
  for (const GpuPrice& price : gpu.prices) {
    costs.push_back({gpu_hours * price.usd_per_gpu_hour,
                     price.usd_per_gpu_hour,
                     Source::kPublished,
                     price.provider,
                     price.date,
                     price.source});
  }
  std::stable_sort(costs.begin(), costs.end(), [](const TrainingCost& a, const TrainingCost& b) {
    return a.cost_usd < b.cost_usd;
  });
  return costs;
}

void set_save_interval(const TrainingRun& run,
                       const FailureModel& model,
                       double iteration_seconds,
                       TrainingEstimate& training) {
  if (run.reliability.save_interval) {
    training.save_interval = *run.reliability.save_interval;
    training.save_interval_source = Source::kGiven;
  } else {
    const double steps = best_interval_seconds(model) / iteration_seconds;
    const auto most = static_cast<double>(std::max<int64_t>(1, training.steps));
    training.save_interval = std::llround(std::clamp(steps, 1.0, most));
  }
}

void require_progress(const TrainingRun& run, const TrainingEstimate& training) {
  if (std::isfinite(training.seconds)) return;
  throw UserError({.what = "failures come too fast for any progress",
                   .where = fmt::format("one every {} on {} GPUs, a checkpoint every {} steps",
                                        format_duration(training.seconds_between_failures),
                                        with_commas(run.world_size),
                                        with_commas(training.save_interval)),
                   .help = "give a smaller reliability.save_interval, or larger "
                           "reliability.gpu_hours_between_failures"});
}

int64_t steps_of(const TrainingRun& run) {
  if (run.steps) return *run.steps;
  if (run.tokens_per_step) return divide_up(*run.tokens, *run.tokens_per_step);
  throw UserError({.what = "the tokens of a step are not known",
                   .where = fmt::format("--train-tokens = {}", *run.tokens),
                   .help =
                       "give --tokens-per-step, or --global-batch-size and --seq-length, or the "
                       "number of steps (--train-iters)"});
}

}  // namespace

TrainingRun training_run(const Plan& plan) {
  return {.world_size = plan.world_size(),
          .tokens_per_step = plan.tokens_per_step(),
          .steps = plan.training.steps,
          .tokens = plan.training.tokens,
          .reliability = plan.reliability,
          .usd_per_gpu_hour = plan.cluster.usd_per_gpu_hour};
}

std::optional<TrainingEstimate> training_estimate(const TrainingRun& run,
                                                  const Gpu& gpu,
                                                  double iteration_seconds) {
  if (!run.has_length()) return std::nullopt;
  const auto world = static_cast<double>(run.world_size);
  const ReliabilityConfig& said = run.reliability;
  TrainingEstimate training;
  training.steps = steps_of(run);
  const auto given = [&](const std::optional<double>& value, const TaggedNumber& otherwise) {
    return value ? TaggedNumber{*value, Source::kGiven, run.said_by} : otherwise;
  };
  training.gpu_hours_between_failures =
      given(said.gpu_hours_between_failures, defaults().gpu_hours_between_failures);
  training.restart_seconds = given(said.restart_seconds, defaults().restart_seconds);
  training.checkpoint_seconds = given(said.checkpoint_seconds, defaults().checkpoint_seconds);
  training.seconds_between_failures = training.gpu_hours_between_failures.value * kHour / world;
  const FailureModel model{.mean_seconds_between_failures = training.seconds_between_failures,
                           .checkpoint_seconds = training.checkpoint_seconds.value,
                           .restart_seconds = training.restart_seconds.value};
  set_save_interval(run, model, iteration_seconds, training);

  training.seconds_without_failures = static_cast<double>(training.steps) * iteration_seconds;
  const ExpectedTime time =
      expected_time(training.seconds_without_failures,
                    static_cast<double>(training.save_interval) * iteration_seconds,
                    model);
  training.seconds = time.total_seconds();
  require_progress(run, training);
  training.failures = time.failures;
  training.goodput =
      training.seconds > 0 ? training.seconds_without_failures / training.seconds : 1;
  training.lost_seconds = {time.checkpoint_seconds, time.restart_seconds, time.repeated_seconds};
  training.gpu_hours = training.seconds / kHour * world;
  training.costs = costs_of(run, gpu, training.gpu_hours);
  if (run.usd_per_gpu_hour) training.cost_usd = training.costs.front().cost_usd;
  return training;
}

}  // namespace estimator
