#include "sim/tracking/module_tree.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace sim {
namespace {

Module module_at(std::initializer_list<std::string_view> elements) {
  ModuleTree tree;
  ModuleId id = kRootModule;
  for (const std::string_view name : elements) id = tree.child(id, name);
  return tree.module(id);
}

TEST(ModuleTree, PathJoinsElementsWithDots) {
  EXPECT_EQ(module_at({"layers.3", "mlp", "linear_fc1"}).path, "layers.3.mlp.linear_fc1");
  EXPECT_EQ(module_at({}).path, "");
}

TEST(ModuleTree, EnteringAgainGivesTheSameModule) {
  ModuleTree tree;
  const ModuleId mlp = tree.child(tree.child(kRootModule, "layers.3"), "mlp");
  EXPECT_EQ(tree.child(tree.child(kRootModule, "layers.3"), "mlp"), mlp);
  EXPECT_NE(tree.child(tree.child(kRootModule, "layers.4"), "mlp"), mlp);
}

TEST(ModuleTree, GroupIsTheSameForAllLayersAndOneLevelDeep) {
  EXPECT_EQ(module_at({"layers.3", "mlp", "linear_fc1"}).group, "layers.*.mlp");
  EXPECT_EQ(module_at({"layers.17", "mlp", "linear_fc2"}).group, "layers.*.mlp");
  EXPECT_EQ(module_at({"layers.17"}).group, "layers.*");
  EXPECT_EQ(module_at({"head", "output_layer"}).group, "head");
}

TEST(ModuleTree, KindFollowsTheOutermostTellingElement) {
  EXPECT_EQ(module_at({"layers.3", "self_attention", "output"}).kind, ModuleKind::kAttention);
  EXPECT_EQ(module_at({"layers.3", "mlp", "linear_fc1"}).kind, ModuleKind::kMlp);
  EXPECT_EQ(module_at({"layers.3", "input_layernorm"}).kind, ModuleKind::kNorm);
  EXPECT_EQ(module_at({"embedding"}).kind, ModuleKind::kEmbedding);
  EXPECT_EQ(module_at({"head", "final_layernorm"}).kind, ModuleKind::kHead);
  EXPECT_EQ(module_at({"loss"}).kind, ModuleKind::kHead);
  EXPECT_EQ(module_at({"mtp.layers.0", "eh_proj"}).kind, ModuleKind::kHead);
  EXPECT_EQ(module_at({"mtp.layers.0", "mtp_model_layer", "mlp"}).kind, ModuleKind::kMlp);
  EXPECT_EQ(module_at({"layers.3"}).kind, ModuleKind::kOther);
}

}  // namespace
}  // namespace sim
