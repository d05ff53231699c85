#include "estimator/what_if/max_micro_batch.h"

#include <fmt/format.h>

#include <numeric>

#include "estimator/base/units.h"
#include "estimator/communication/fabric.h"
#include "estimator/resolve/resolve_plan.h"
#include "estimator/what_if/largest_that_fits.h"
#include "estimator/what_if/plan_changes.h"
#include "estimator/what_if/typed_flags.h"

namespace estimator {
namespace {

constexpr int64_t kLargestTried = 1 << 16;

PlanEdits edits_for(int64_t size) { return {{"training.micro_batch_size", size}}; }

/// Ascending.
std::vector<int64_t> sizes_to_try(const PlanSpec& spec, const Plan& plan, HeldFixed held) {
  if (held == HeldFixed::kMicroBatches) {
    std::vector<int64_t> sizes(kLargestTried);
    std::iota(sizes.begin(), sizes.end(), 1);
    return sizes;
  }
  std::vector<int64_t> sizes = micro_batch_sizes(plan);
  std::erase_if(sizes, [&](int64_t size) { return !plan_if_allowed(spec, edits_for(size)); });
  return sizes;
}

}  // namespace

MaxMicroBatch find_max_micro_batch(const PlanSpec& spec, const PlanRunner& runner) {
  Plan plan = resolve_plan(spec);
  MaxMicroBatch answer;
  answer.held_fixed =
      spec.says("training.global_batch_size") ? HeldFixed::kGlobalBatch : HeldFixed::kMicroBatches;
  answer.capacity_bytes = gpu_of(plan.cluster).memory_bytes;
  const std::vector<int64_t> sizes = sizes_to_try(spec, plan, answer.held_fixed);
  const LargestSize largest = largest_that_fits(
      sizes, [&](int64_t size) { return resolve_plan(spec.with(edits_for(size))); }, runner);
  for (const SizeTrial& trial : largest.trials) {
    answer.trials.push_back(
        {.micro_batch_size = trial.size, .outcome = trial.outcome, .peak_bytes = trial.peak_bytes});
  }
  answer.micro_batch_size = largest.size;
  if (largest.size) plan = resolve_plan(spec.with(edits_for(*largest.size)));
  answer.micro_batches = plan.micro_batches();
  answer.global_batch_size = plan.global_batch_size();
  return answer;
}

std::string max_micro_batch_text(const MaxMicroBatch& answer) {
  const bool global_held = answer.held_fixed == HeldFixed::kGlobalBatch;
  std::string text = "not even the smallest micro-batch fits\n";
  if (answer.micro_batch_size) {
    text = fmt::format("largest micro-batch that fits: {} ({})\n  {}: {}\n",
                       *answer.micro_batch_size,
                       flags_to_type(edits_for(*answer.micro_batch_size)),
                       global_held ? "of those that divide the given global batch"
                                   : "the global batch grows with it, as none is given",
                       fmt::format("{} samples a step, {} micro-batch{} on each data rank",
                                   with_commas(answer.global_batch_size),
                                   answer.micro_batches,
                                   answer.micro_batches == 1 ? "" : "es"));
  }
  std::vector<SizeTrial> trials;
  for (const MicroBatchTrial& trial : answer.trials) {
    trials.push_back({trial.micro_batch_size, trial.outcome, trial.peak_bytes});
  }
  return text + trials_text(std::move(trials), answer.capacity_bytes);
}

}  // namespace estimator
