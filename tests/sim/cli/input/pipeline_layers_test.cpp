#include "sim/cli/input/pipeline_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <CLI/CLI.hpp>

#include "estimator/base/errors.h"
#include "estimator/base/fields.h"

namespace sim {
namespace {

using estimator::Json;
using testing::HasSubstr;

constexpr const char* kFirst7 = "--decoder-first-pipeline-num-layers 7 ";
constexpr const char* kLast7 = "--decoder-last-pipeline-num-layers 7";

/// A plan of so many layers on so many stages, with the flags over it.
Json overlaid(const std::string& command_line, int64_t layers, int64_t stages) {
  Json tree = {{"model", {{"preset", "gpt2"}, {"num_layers", layers}}},
               {"parallelism", {{"pipeline", stages}}}};
  CLI::App app;
  PipelineLayers flags;
  flags.add_to(app);
  app.parse(command_line, false);
  flags.overlay(tree);
  return tree["parallelism"];
}

std::string error_of(const std::string& command_line, int64_t layers, int64_t stages) {
  try {
    overlaid(command_line, layers, stages);
  } catch (const estimator::UserError& error) {
    return error.what();
  }
  return "";
}

TEST(PipelineLayers, SpreadTheOtherLayersEvenlyOverTheOtherStages) {
  EXPECT_EQ(overlaid(std::string(kFirst7) + kLast7, 30, 4)["layers_per_stage"], Json({7, 8, 8, 7}));
  EXPECT_EQ(overlaid(kFirst7, 13, 3)["layers_per_stage"], Json({7, 3, 3}));
  EXPECT_EQ(overlaid(kLast7, 13, 3)["layers_per_stage"], Json({3, 3, 7}));
  EXPECT_EQ(overlaid(std::string(kFirst7) + kLast7, 14, 2)["layers_per_stage"], Json({7, 7}));
}

TEST(PipelineLayers, TakeTheLayersOfAPresetThatIsNotOverridden) {
  Json tree = {{"model", "gpt2"}, {"parallelism", {{"pipeline", 2}}}};  // 12 layers
  CLI::App app;
  PipelineLayers flags;
  flags.add_to(app);
  app.parse(kFirst7, false);
  flags.overlay(tree);
  EXPECT_EQ(tree["parallelism"]["layers_per_stage"], Json({7, 5}));
}

TEST(PipelineLayers, RefuseWhatDoesNotDivide) {
  EXPECT_THAT(error_of(kFirst7, 30, 3), HasSubstr("30 layers, 3 stages; first stage 7"));
  EXPECT_THAT(error_of(kFirst7, 6, 3), HasSubstr("do not split"));
  EXPECT_THAT(error_of(std::string(kFirst7) + kLast7, 15, 2), HasSubstr("do not split"));
  EXPECT_THAT(error_of(std::string(kFirst7) + kLast7, 14, 1), HasSubstr("do not split"));
  EXPECT_THAT(error_of("--decoder-first-pipeline-num-layers x", 30, 4), HasSubstr("= \"x\""));
}

TEST(PipelineLayers, OfAStageAreAtLeastOneAsInMegatronLm) {
  for (const char* flag :
       {"--decoder-first-pipeline-num-layers", "--decoder-last-pipeline-num-layers"}) {
    EXPECT_THAT(error_of(flag + std::string(" 0"), 30, 4), HasSubstr(flag + std::string(" = 0")));
    EXPECT_THAT(error_of(flag + std::string(" -1"), 30, 4), HasSubstr("out of range"));
  }
}

TEST(PipelineLayers, OfAPlanWithoutAPipelineAreThoseOfOneStage) {
  for (const char* flag : {"--decoder-first-pipeline-num-layers 2",
                           "--decoder-last-pipeline-num-layers 2",
                           "--num-layers-per-virtual-pipeline-stage 5"}) {
    Json tree = {{"model", "gpt2"}};
    CLI::App app;
    PipelineLayers flags;
    flags.add_to(app);
    app.parse(flag, false);
    EXPECT_THROW(flags.overlay(tree), estimator::UserError) << flag;
  }
}

TEST(PipelineLayers, RefuseAPlanThatListsItsStagesAlready) {
  Json tree = {{"model", "gpt2"}, {"parallelism", {{"pipeline", 2}, {"layers_per_stage", {6, 6}}}}};
  CLI::App app;
  PipelineLayers flags;
  flags.add_to(app);
  app.parse(kFirst7, false);
  EXPECT_THROW(flags.overlay(tree), estimator::UserError);
}

// Megatron-LM: (num_layers // pipeline) // num_layers_per_virtual_pipeline_stage.
TEST(PipelineLayers, OfAVirtualStageTellHowManyThereAre) {
  EXPECT_EQ(overlaid("--num-layers-per-virtual-pipeline-stage 2", 32, 4)["virtual_stages"], 4);
  EXPECT_EQ(overlaid("--num-layers-per-virtual-pipeline-stage 8", 32, 4)["virtual_stages"], 1);
}

TEST(PipelineLayers, OfAVirtualStageMustDivideThoseOfAStage) {
  const std::string flag = "--num-layers-per-virtual-pipeline-stage ";
  EXPECT_THAT(error_of(flag + "3", 32, 4), HasSubstr("= 3; 32 layers, 4 stages"));
  EXPECT_THAT(error_of(flag + "1", 30, 4), HasSubstr("do not split"));
  EXPECT_THAT(error_of(flag + "0", 32, 4), HasSubstr("do not split"));
}

TEST(PipelineLayers, OfAVirtualStageAreNotGivenBesideTheirNumber) {
  Json tree = {{"model", "gpt2"}, {"parallelism", {{"pipeline", 2}, {"virtual_stages", 2}}}};
  CLI::App app;
  PipelineLayers flags;
  flags.add_to(app);
  app.parse("--num-layers-per-virtual-pipeline-stage 3", false);
  EXPECT_THROW(flags.overlay(tree), estimator::UserError);
}

TEST(PipelineLayers, OfALayoutTellTheVirtualStages) {
  const Json plan = overlaid("--pipeline-model-parallel-layout Et*3|(tt|)*6L", 15, 4);
  EXPECT_EQ(plan["layers_per_stage"], Json({3, 2, 2, 2, 2, 2, 2, 0}));
  EXPECT_EQ(plan["virtual_stages"], 2);
  EXPECT_EQ(overlaid("--pipeline-model-parallel-layout Et|tttL", 4, 2)["virtual_stages"], 1);
}

TEST(PipelineLayers, OfALayoutAreNotGivenBesideOthers) {
  const std::string layout = "--pipeline-model-parallel-layout Et|tttL ";
  for (const std::string& flag : {kFirst7 + std::string(),
                                  std::string(kLast7),
                                  std::string("--num-layers-per-virtual-pipeline-stage 2")}) {
    EXPECT_THAT(error_of(layout + flag, 4, 2), HasSubstr("given twice")) << flag;
  }
  for (const Json& said : {Json{{"virtual_stages", 1}}, Json{{"layers_per_stage", {1, 3}}}}) {
    Json tree = {{"model", "gpt2"}, {"parallelism", said}};
    CLI::App app;
    PipelineLayers flags;
    flags.add_to(app);
    app.parse(layout, false);
    EXPECT_THROW(flags.overlay(tree), estimator::UserError) << said;
  }
}

TEST(PipelineLayers, LeaveAloneAPlanThatTellsNoStages) {
  EXPECT_EQ(overlaid("", 30, 4), Json({{"pipeline", 4}}));
  EXPECT_EQ(overlaid(kFirst7, 30, int64_t{1} << 60), Json({{"pipeline", int64_t{1} << 60}}));
}

}  // namespace
}  // namespace sim
