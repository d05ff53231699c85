// What deterministic training adds to a rank, on a GPT of two layers: hidden 1024, 16 heads,
// micro-batches of 4 x 512 tokens, 16-bit.
#include <gtest/gtest.h>

#include "tests/sim/rank/executed_rank.h"

namespace sim::determinism {  // where the formulas' letters mean its sizes
namespace {

using estimator::Json;
using estimator::RankProfile;

constexpr int64_t s = 512, b = 4, h = 1024, heads = 16;
constexpr int64_t kBf16 = 2;

RankProfile run(const char* gpu, const Json& training) {
  // Deterministic or not, cuBLAS has the workspace that determinism asks for.
  return execute(gpt_plan({{"cluster", {{"gpu", gpu}}},
                           {"training", training},
                           {"memory", {{"cublas_workspace", ":4096:8"}}}}));
}

Json deterministic(bool fill) {
  return {{"dtype", "bf16"}, {"deterministic_mode", true}, {"fill_uninitialized_memory", fill}};
}

double filled_bytes(const RankProfile& profile, estimator::Direction direction) {
  double bytes = 0;
  for (const estimator::OperatorRecord& record : profile.operators) {
    if (record.name == "aten::fill_" && record.direction == direction) {
      bytes += record.bytes * static_cast<double>(record.count);
    }
  }
  return bytes;
}

// Each layer's products are s x b rows of 3h, h, 4h and h columns, and its attention makes the
// scores that its first product never reads; norms and the residual stream are filled besides.
// The data loader's masks are filled always.
TEST(Determinism, FillsWhatTheFrameworkMakesEmpty) {
  constexpr int64_t kMicroBatches = 4, kLayers = 2, kColumns = 3 + 1 + 4 + 1;
  const double products = kMicroBatches * kBf16 * kLayers * kColumns * s * b * h;
  const double scores = kMicroBatches * kBf16 * kLayers * b * heads * s * s;
  const double masks = kMicroBatches * b * s * s;
  const double filled =
      filled_bytes(run("a100", deterministic(true)), estimator::Direction::kForward);
  EXPECT_GT(filled, products + scores + masks);
  EXPECT_LT(filled, 1.5 * products + scores + masks);
  EXPECT_EQ(filled_bytes(run("a100", deterministic(false)), estimator::Direction::kForward), masks);
}

TEST(Determinism, OfFilledMemoryTakesNoMoreOfIt) {
  const RankProfile filled = run("a100", deterministic(true));
  const RankProfile not_filled = run("a100", deterministic(false));
  EXPECT_EQ(filled.peak.allocated_bytes, not_filled.peak.allocated_bytes);
  EXPECT_EQ(filled.peak.reserved_bytes, not_filled.peak.reserved_bytes);
}

TEST(Determinism, OfCudnnOnHopperHoldsTheGradientOfTheScores) {
  const auto backward_peak = [](const char* gpu, bool is_deterministic) {
    const RankProfile profile = run(
        gpu, {{"dtype", "bf16"}, {"attention", "fused"}, {"deterministic_mode", is_deterministic}});
    int64_t peak = 0;
    for (const estimator::ModuleRecord& module : profile.modules) {
      if (module.path.find("attention") != std::string::npos) {
        peak = std::max(peak, module.backward_peak_bytes);
      }
    }
    return peak;
  };
  // Without it the module's peak lies in a product, a little higher than in the attention.
  constexpr int64_t kScores = kBf16 * b * heads * s * s;
  const int64_t added = backward_peak("h100", true) - backward_peak("h100", false);
  EXPECT_GT(added, kScores / 2);
  EXPECT_LE(added, kScores);
  EXPECT_EQ(backward_peak("b200", true), backward_peak("b200", false));
}

}  // namespace
}  // namespace sim::determinism
