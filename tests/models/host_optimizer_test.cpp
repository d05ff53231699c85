#include "models/optimizer/host_optimizer.h"

#include <gtest/gtest.h>

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>

#include "tests/models/small_shards.h"

namespace models {
namespace {

using estimator::Json;

/// Pieces of parameters of one or two dims, as (elements, dims).
struct Pieces {
  explicit Pieces(const std::vector<std::pair<int64_t, int64_t>>& shapes)
      : parameters(shapes.size()) {
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const auto [elements, dims] = shapes[i];
      parameters[i].value = dims == 1 ? at::empty({elements}) : at::empty({1, elements});
      all.push_back({&parameters[i], parameters[i].value.view(-1)});
    }
  }
  std::deque<Parameter> parameters;
  std::vector<OptimizerPiece> all;
};

using Numbers = std::vector<std::size_t>;

TEST(DividePieces, GivesTheHostMatricesFirstUpToTheFractionOrMore) {
  const Pieces pieces({{10, 1}, {40, 2}, {20, 2}, {30, 2}});
  const auto of_host = [&](double fraction) { return divide_pieces(pieces.all, fraction).host; };
  EXPECT_EQ(of_host(0), Numbers{});
  EXPECT_EQ(of_host(0.01), (Numbers{1}));
  EXPECT_EQ(of_host(0.4), (Numbers{1}));
  EXPECT_EQ(of_host(0.41), (Numbers{1, 2}));
  EXPECT_EQ(of_host(0.9), (Numbers{1, 2, 3}));
  EXPECT_EQ(of_host(1), (Numbers{1, 2, 3, 0}));
}

TEST(DividePieces, LeavesTheRestToTheDevice) {
  const Pieces pieces({{10, 1}, {40, 2}, {20, 2}, {30, 2}});
  EXPECT_EQ(divide_pieces(pieces.all, 0).device, (Numbers{1, 2, 3, 0}));
  EXPECT_EQ(divide_pieces(pieces.all, 0.41).device, (Numbers{3, 0}));
  EXPECT_EQ(divide_pieces(pieces.all, 1).device, Numbers{});
  EXPECT_EQ(divide_pieces({}, 1).host, Numbers{});
}

/// All parameters after two iterations of a bf16 shard under the distributed optimizer.
std::vector<at::Tensor> trained(const Json& training) {
  Json changes = {{"parallelism", {{"zero_stage", 1}}},
                  {"training", {{"dtype", "bf16"}, {"framework", "plain"}}}};
  changes["training"].update(training);
  const estimator::Plan plan = small_plan(changes);
  SilentObserver observer;
  const auto trainer = built_trainer(plan, {}, {}, observer);
  trainer->build_optimizer();
  for (int64_t iteration = 0; iteration < 2; ++iteration) {
    trainer->forward_backward(iteration);
    trainer->optimizer_step();
  }
  std::vector<at::Tensor> values;
  for (const Parameter& parameter : trainer->stage().parameters().all()) {
    values.push_back(parameter.value.detach().clone());
  }
  return values;
}

TEST(HostOptimizer, ChangesNoNumber) {
  const std::vector<at::Tensor> expected = trained(Json::object());
  for (const double fraction : {0.0, 0.5, 1.0}) {
    for (const bool overlap : {false, true}) {
      const std::vector<at::Tensor> values = trained({{"optimizer_cpu_offload", true},
                                                      {"optimizer_offload_fraction", fraction},
                                                      {"overlap_cpu_optimizer_d2h_h2d", overlap}});
      ASSERT_EQ(values.size(), expected.size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        EXPECT_TRUE(at::equal(values[i], expected[i])) << fraction << " " << overlap << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace models
