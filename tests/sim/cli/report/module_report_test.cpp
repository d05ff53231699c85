#include "sim/cli/report/module_report.h"

#include <gtest/gtest.h>

#include "estimator/base/module_path.h"

namespace sim {
namespace {

using estimator::ModuleRecord;

/// Two layers, each with a norm and an MLP, as a profile lists them.
std::vector<ModuleRecord> two_layers() {
  return {{"layers.0", 110, 11, 500, 700},
          {"layers.0.norm", 10, 1, 400, 600},
          {"layers.0.mlp", 100, 10, 500, 700},
          {"layers.1", 220, 22, 550, 650},
          {"layers.1.norm", 20, 2, 450, 550},
          {"layers.1.mlp", 200, 20, 550, 650}};
}

std::vector<std::string> paths_of(const std::vector<ModuleGroup>& groups) {
  std::vector<std::string> paths;
  for (const ModuleGroup& group : groups) paths.push_back(group.record.path);
  return paths;
}

TEST(ModuleReport, AddsUpEqualPlacesOfAllLayersAndTakesTheLargestPeak) {
  const auto groups = group_modules(two_layers(), {});
  EXPECT_EQ(paths_of(groups),
            (std::vector<std::string>{"layers.*", "layers.*.norm", "layers.*.mlp"}));
  EXPECT_EQ(groups[2].count, 2);
  EXPECT_EQ(groups[2].record.parameter_bytes, 300);
  EXPECT_EQ(groups[2].record.activation_bytes_at_peak, 30);
  EXPECT_EQ(groups[2].record.forward_peak_bytes, 550);
  EXPECT_EQ(groups[2].record.backward_peak_bytes, 700);
}

TEST(ModuleReport, EndsAtTheDepthThatIsAskedFor) {
  EXPECT_EQ(paths_of(group_modules(two_layers(), {.depth = 1})),
            (std::vector<std::string>{"layers.*"}));
  EXPECT_EQ(group_modules(two_layers(), {.depth = 1})[0].record.parameter_bytes, 330);
}

TEST(ModuleReport, ShowsEachLayerByItself) {
  EXPECT_EQ(paths_of(group_modules(two_layers(), {.each = true, .depth = 1})),
            (std::vector<std::string>{"layers.0", "layers.1"}));
}

TEST(ModuleReport, TakesALayerWithItsNumberAsOneLevel) {
  EXPECT_EQ(estimator::path_elements("layers.12.mlp.linear_fc1"),
            (std::vector<std::string>{"layers.12", "mlp", "linear_fc1"}));
  EXPECT_EQ(path_pattern("layers.12.mlp.linear_fc1", {.depth = 2}), "layers.*.mlp");
  EXPECT_EQ(path_pattern("", {.depth = 2}), "");
}

}  // namespace
}  // namespace sim
