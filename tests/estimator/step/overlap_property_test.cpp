// What a flag hides is never more than what it would have cost: an iteration with an overlap on is
// no longer than with it off.
#include <gtest/gtest.h>

#include <random>

#include "estimator/communication/communication_time.h"
#include "estimator/step/step_time.h"
#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

class AnyStep {
 public:
  explicit AnyStep(unsigned seed) : random_(seed) {
    const int64_t stages = between(1, 8);
    const int64_t chunks = stages > 1 ? between(1, 2) : 1;
    const int64_t micro_batches = stages * between(1, 6);
    plan_ = pipeline_plan({{"model", {{"num_layers", 16 * stages}}},
                           {"cluster", {{"gpus_per_node", stages}}},
                           {"parallelism", {{"pipeline", stages}}},
                           {"training", {{"global_batch_size", micro_batches}}}});
    plan_.parallelism.virtual_stages = chunks;
    for (int64_t s = 0; s < stages; ++s) {
      stages_.emplace_back();
      for (int64_t c = 0; c < chunks; ++c) stages_.back().chunks.push_back(any_chunk());
      stages_.back().send_forward_bytes = stages_.back().send_backward_bytes =
          between(0, int64_t{1} << 26);
      stages_.back().step_end.compute_seconds = seconds(0.02);
    }
  }

  /// Reduction of the stages that Megatron-LM's does it on (see StageTime's tests), or on all as
  /// PyTorch's reducer; gather.
  enum Which { kReduce, kReduceOnAll, kGather };

  /// With these calls beside the work, or after it (before it).
  double seconds_with(bool overlapped, Which which) const {
    std::vector<StageTime> stages = stages_;
    for (StageTime& stage : stages) {
      const bool is_later = &stage != &stages.front() && stage.chunks.size() == 1;
      for (ChunkTime& chunk : stage.chunks) {
        (which == kGather ? chunk.gather_parameters : chunk.reduce_gradients).overlappable =
            overlapped && (which != kReduce || !is_later);
      }
    }
    return step_time(plan_, ParallelLayout(plan_.parallelism), fabric_of(plan_), stages)
        .iteration_seconds;
  }

  /// Of the gradients of one micro-batch, from each stage to the one before.
  double all_sends_seconds() const {
    double sum = 0;
    for (std::size_t s = 1; s < stages_.size(); ++s) {
      const auto rank = static_cast<int64_t>(s);
      sum += send_seconds(stages_[s].send_backward_bytes, rank, rank - 1, fabric_of(plan_));
    }
    return sum;
  }

  const Plan& plan() const { return plan_; }

 private:
  ChunkTime any_chunk() {
    ChunkTime chunk;
    for (PartTime* part : {&chunk.forward, &chunk.backward}) {
      part->compute_seconds = seconds(0.02);
      part->communication_seconds.tensor = seconds(0.01);
    }
    chunk.reduce_gradients = any_buckets(chunk.backward);
    chunk.gather_parameters = any_buckets(chunk.forward);
    return chunk;
  }

  /// Calls of the work need the port for at most all of their time.
  BucketTime any_buckets(const PartTime& work) {
    const double communication = sum_of(work.communication_seconds) / work.total_seconds();
    BucketTime buckets{.sum_seconds = seconds(0.05), .buckets = between(1, 10)};
    buckets.compute_share = seconds(0.3);
    buckets.port_share = between(0, 2) == 0 ? seconds(communication) : 0;
    buckets.use.link = between(0, 1) == 0 ? seconds(1) : 0;  // as sends do
    buckets.overlappable = between(0, 1) == 0;
    return buckets;
  }

  int64_t between(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }
  double seconds(double most) { return std::uniform_real_distribution<>(0, most)(random_); }

  std::mt19937 random_;
  Plan plan_;
  std::vector<StageTime> stages_;
};

void expect_never_longer(AnyStep::Which which) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    const AnyStep step(seed);
    const double off = step.seconds_with(false, which), on = step.seconds_with(true, which);
    EXPECT_LE(on, off * (1 + 1e-9))
        << "seed " << seed << ", " << step.plan().parallelism.pipeline << " stages, "
        << step.plan().parallelism.virtual_stages << " chunks, " << step.plan().micro_batches()
        << " micro-batches";
  }
}

TEST(Overlap, OfTheGradientsReductionIsNeverLonger) { expect_never_longer(AnyStep::kReduce); }

// A reducer that does not wait shares a port with the send of the last gradients, which the stage
// before waits for; after the step's end it would have had the port, and the bubble, for itself.
TEST(Overlap, OfAReducerBesideSendsIsLongerByNoMoreThanThose) {
  int longer = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    const AnyStep step(seed);
    if (step.plan().parallelism.virtual_stages > 1) continue;
    const double off = step.seconds_with(false, AnyStep::kReduceOnAll);
    const double on = step.seconds_with(true, AnyStep::kReduceOnAll);
    EXPECT_LE(on, (off + step.all_sends_seconds()) * (1 + 1e-9)) << "seed " << seed;
    longer += on > off * (1 + 1e-9);
  }
  EXPECT_GT(longer, 0);
}

TEST(Overlap, OfTheParametersGatherIsNeverLonger) { expect_never_longer(AnyStep::kGather); }

}  // namespace
}  // namespace estimator
