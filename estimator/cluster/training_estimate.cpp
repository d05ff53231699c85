#include "estimator/cluster/training_estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "estimator/base/database.h"
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

/// The plan's price alone, or every published one of the GPU, cheapest first.
std::vector<TrainingCost> costs_of(const Plan& plan, const Gpu& gpu, double gpu_hours) {
  if (plan.cluster.usd_per_gpu_hour) {
    const double price = *plan.cluster.usd_per_gpu_hour;
    return {{gpu_hours * price, price, Source::kGiven, "the plan", "", ""}};
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

void set_save_interval(const Plan& plan,
                       const FailureModel& model,
                       double iteration_seconds,
                       TrainingEstimate& training) {
  if (plan.reliability.save_interval) {
    training.save_interval = *plan.reliability.save_interval;
    training.save_interval_source = Source::kGiven;
  } else {
    const double steps = best_interval_seconds(model) / iteration_seconds;
    const auto most = static_cast<double>(std::max<int64_t>(1, training.steps));
    training.save_interval = std::llround(std::clamp(steps, 1.0, most));
  }
}

void require_progress(const Plan& plan, const TrainingEstimate& training) {
  if (std::isfinite(training.seconds)) return;
  throw UserError({.what = "failures come too fast for any progress",
                   .where = fmt::format("one every {} on {} GPUs, a checkpoint every {} steps",
                                        format_duration(training.seconds_between_failures),
                                        with_commas(plan.world_size()),
                                        with_commas(training.save_interval)),
                   .help = "give a smaller reliability.save_interval, or larger "
                           "reliability.gpu_hours_between_failures"});
}

}  // namespace

std::optional<TrainingEstimate> training_estimate(const Plan& plan,
                                                  const Gpu& gpu,
                                                  double iteration_seconds) {
  const TrainingConfig& config = plan.training;
  if (!config.steps && !config.tokens) return std::nullopt;
  const auto world = static_cast<double>(plan.world_size());
  const ReliabilityConfig& said = plan.reliability;
  TrainingEstimate training;
  training.steps = config.steps ? *config.steps : divide_up(*config.tokens, plan.tokens_per_step());
  training.gpu_hours_between_failures =
      given_or(said.gpu_hours_between_failures, defaults().gpu_hours_between_failures);
  training.restart_seconds = given_or(said.restart_seconds, defaults().restart_seconds);
  training.checkpoint_seconds = given_or(said.checkpoint_seconds, defaults().checkpoint_seconds);
  training.seconds_between_failures = training.gpu_hours_between_failures.value * kHour / world;
  const FailureModel model{.mean_seconds_between_failures = training.seconds_between_failures,
                           .checkpoint_seconds = training.checkpoint_seconds.value,
                           .restart_seconds = training.restart_seconds.value};
  set_save_interval(plan, model, iteration_seconds, training);

  training.seconds_without_failures = static_cast<double>(training.steps) * iteration_seconds;
  const ExpectedTime time =
      expected_time(training.seconds_without_failures,
                    static_cast<double>(training.save_interval) * iteration_seconds,
                    model);
  training.seconds = time.total_seconds();
  require_progress(plan, training);
  training.failures = time.failures;
  training.goodput =
      training.seconds > 0 ? training.seconds_without_failures / training.seconds : 1;
  training.lost_seconds = {time.checkpoint_seconds, time.restart_seconds, time.repeated_seconds};
  training.gpu_hours = training.seconds / kHour * world;
  training.costs = costs_of(plan, gpu, training.gpu_hours);
  if (plan.cluster.usd_per_gpu_hour) training.cost_usd = training.costs.front().cost_usd;
  return training;
}

}  // namespace estimator
