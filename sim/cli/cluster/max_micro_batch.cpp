#include "sim/cli/cluster/max_micro_batch.h"

#include <fmt/format.h>

#include <algorithm>

#include "estimator/base/units.h"
#include "estimator/cluster/memory_verdict.h"
#include "estimator/communication/fabric.h"

namespace sim {
namespace {

using estimator::format_gib;
using estimator::Json;
using estimator::Plan;

constexpr int64_t kLargestTried = 1 << 16;

Plan with_micro_batch(const Plan& plan, int64_t size) {
  Json tree = estimator::to_json(plan);
  tree["training"]["micro_batch_size"] = size;
  tree["training"]["global_batch_size"] = size * plan.data_parallel_size() * plan.micro_batches();
  return estimator::resolve_plan(tree, {.origin = "--max-micro-batch"});
}

}  // namespace

MaxMicroBatch find_max_micro_batch(const Plan& plan, const PlanRunner& runner) {
  MaxMicroBatch answer;
  answer.micro_batches = plan.micro_batches();
  answer.capacity_bytes = estimator::gpu_of(plan).memory_bytes;
  int64_t likely_stage = 0;
  const auto fits = [&](int64_t size) {
    const FitAnswer probed = probe_fit(with_micro_batch(plan, size), likely_stage, runner);
    if (probed.estimate) likely_stage = worst_stage(*probed.estimate);
    answer.trials.push_back(
        {.micro_batch_size = size, .outcome = probed.fit, .peak_bytes = probed.peak_bytes});
    return probed.fits();
  };
  int64_t largest = 0, too_large = 1;
  while (too_large <= kLargestTried && fits(too_large)) {
    largest = too_large;
    too_large *= 2;
  }
  while (too_large - largest > 1) {
    const int64_t middle = (largest + too_large) / 2;
    (fits(middle) ? largest : too_large) = middle;
  }
  if (largest > 0) answer.micro_batch_size = largest;
  return answer;
}

std::string max_micro_batch_text(const MaxMicroBatch& answer) {
  std::string text;
  if (answer.micro_batch_size) {
    text = fmt::format(
        "largest micro-batch that fits: {} ({} micro-batches a step on each data rank)\n",
        *answer.micro_batch_size,
        answer.micro_batches);
  } else {
    text = "not even a micro-batch of 1 fits\n";
  }
  std::vector<MicroBatchTrial> trials = answer.trials;
  std::sort(trials.begin(), trials.end(), [](const auto& a, const auto& b) {
    return a.micro_batch_size < b.micro_batch_size;
  });
  for (const MicroBatchTrial& trial : trials) {
    text += fmt::format("  {:>5}  {:>11} of {}  {}\n",
                        trial.micro_batch_size,
                        format_gib(trial.peak_bytes),
                        format_gib(answer.capacity_bytes),
                        estimator::fit_words(trial.outcome));
  }
  return text;
}

}  // namespace sim
