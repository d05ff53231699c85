#include "models/layers/recompute.h"

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <optional>

#include "tests/models/small_shards.h"

namespace models {
namespace {

using torch::autograd::variable_list;
using Weak = c10::weak_intrusive_ptr<c10::StorageImpl>;

/// Whether the gradient of a segment's output still has memory when the last operator of the
/// recomputed segment has run backward.
bool holds_gradient(const CheckpointOptions& options) {
  SilentObserver observer;
  std::optional<Weak> of_output;
  bool holds = false;
  const auto segment = [&](const variable_list& inputs) {
    const at::Tensor middle = inputs[0].sin();
    if (middle.requires_grad()) {
      middle.register_hook([&](const at::Tensor&) { holds = !of_output.value().expired(); });
    }
    return middle.cos();
  };
  const at::Tensor input = at::ones({8}).requires_grad_(true);
  const at::Tensor output = checkpoint(models::Segment(segment), {input}, observer, options);
  output.register_hook([&](const at::Tensor& gradient) {
    of_output.emplace(gradient.storage().getWeakStorageImpl());
  });
  output.exp().sum().backward();
  EXPECT_TRUE(of_output.has_value());
  EXPECT_NE(input.grad().sum().item<double>(), 0);
  return holds;
}

// The checkpoint without reentry is no node of autograd's graph, which would hold what it is given.
TEST(Checkpoint, LetsTheGradientOfItsOutputGoIfItsOutputIsFreed) {
  EXPECT_FALSE(holds_gradient({.keeper = nullptr, .holds_output = false}));
  EXPECT_TRUE(holds_gradient({.keeper = nullptr, .holds_output = true}));
}

}  // namespace
}  // namespace models
