#include "sim/cli/page/peak_tree.h"

#include <gtest/gtest.h>

namespace sim {
namespace {

using estimator::PeakAllocation;
using enum estimator::MemoryCategory;

PeakAllocation tensor(const std::string& module, int64_t bytes) {
  return {.category = kActivation,
          .bytes = bytes,
          .shape = std::vector<int64_t>{8, 4},
          .dtype = "BFloat16",
          .module = module,
          .operator_name = "aten::mm",
          .phase = "iteration_1.forward_backward",
          .direction = estimator::Direction::kForward};
}

TEST(PeakTree, MakesOneModuleOfLayersThatDifferInTheirIndex) {
  const PeakTree root =
      peak_tree({tensor("layers.0.mlp", 3), tensor("layers.1.mlp", 3), tensor("head", 5)});
  EXPECT_EQ(root.bytes, 11);
  ASSERT_EQ(root.modules.size(), 2u);
  const PeakTree& layers = root.modules[0];
  EXPECT_EQ(layers.name, "layers.*");
  EXPECT_EQ(layers.bytes, 6);
  EXPECT_EQ(layers.count, 2);
  ASSERT_EQ(layers.modules.size(), 1u);
  ASSERT_EQ(layers.modules[0].tensors.size(), 1u);
  const TensorGroup& group = layers.modules[0].tensors[0];
  EXPECT_EQ(group.count, 2);
  EXPECT_EQ(group.tensor, "[8, 4]");
  EXPECT_EQ(group.made_by, "aten::mm");
  EXPECT_EQ(group.place, "iteration_1.forward_backward, forward");
}

TEST(PeakTree, HasMostBytesFirstAndTheColourOfMostBytes) {
  PeakAllocation weight = tensor("a", 4);
  weight.category = kParameter;
  const PeakTree root = peak_tree({tensor("b", 1), tensor("a", 3), weight, tensor("a.c", 2)});
  ASSERT_EQ(root.modules.size(), 2u);
  EXPECT_EQ(root.modules[0].name, "a");
  EXPECT_EQ(root.modules[0].category, "activation");  // 5 bytes of it, and 4 of parameters
  EXPECT_EQ(root.modules[0].tensors[0].category, "parameter");
  EXPECT_EQ(root.category, "activation");
}

TEST(PeakTree, KeepsWhatNoModuleMadeAndWhereItWasCalled) {
  PeakAllocation workspace{.category = kWorkspace, .bytes = 7, .phase = "build_model"};
  workspace.frames = {"train.py:3 step"};
  const PeakTree root = peak_tree({workspace});
  ASSERT_EQ(root.modules.size(), 1u);
  EXPECT_EQ(root.modules[0].name, "(no module)");
  EXPECT_EQ(root.modules[0].tensors[0].tensor, "no tensor");
  EXPECT_EQ(root.modules[0].tensors[0].place, "build_model\ntrain.py:3 step");
}

}  // namespace
}  // namespace sim
