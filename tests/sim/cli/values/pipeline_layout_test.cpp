#include "sim/cli/values/pipeline_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "estimator/base/errors.h"

namespace sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string layout_error(const std::string& text,
                         int64_t layers,
                         int64_t stages,
                         int64_t predictions = 0) {
  try {
    layers_of_layout(text, {.layers = layers, .predictions = predictions}, stages);
  } catch (const estimator::UserError& error) {
    return error.what();
  }
  return "";
}

// The examples that parse_str_to_list() of Megatron-LM's pipeline_parallel_layer_layout.py gives.
TEST(PipelineLayout, RepeatsGroupsAndThenLetters) {
  EXPECT_EQ(unrolled_layout("xy(ab|cd|ef)*2,pq"), "xyab|cd|efab|cd|efpq");
  EXPECT_EQ(unrolled_layout("(ab)*3"), "ababab");
  EXPECT_EQ(unrolled_layout("ab,(cd|)*2"), "abcd|cd|");
  EXPECT_EQ(unrolled_layout("(|ab)*2,cd"), "|ab|abcd");
  EXPECT_EQ(unrolled_layout("Et*3|(t*2|)*2L"), "Ettt|tt|tt|L");
  EXPECT_EQ(unrolled_layout("t|*3t*0L"), "t|||L");
}

TEST(PipelineLayout, LeavesAloneWhatRepeatsNothing) {
  EXPECT_EQ(unrolled_layout("(tt|L"), "(tt|L");
  EXPECT_EQ(unrolled_layout("()*2"), "())");
  EXPECT_EQ(unrolled_layout("t*"), "t*");
  EXPECT_EQ(unrolled_layout("(a)b(c)*2"), "(a)bcc");
}

TEST(PipelineLayout, GivesTheLayersOfEachStageInModelOrder) {
  EXPECT_THAT(layers_of_layout("Et*3|(tt|)*6L", {15}, 4), ElementsAre(3, 2, 2, 2, 2, 2, 2, 0));
  EXPECT_THAT(layers_of_layout("Et|tttL", {4}, 2), ElementsAre(1, 3));
  EXPECT_THAT(layers_of_layout("E||t|L", {1}, 2), ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(layers_of_layout("EttL", {2}, 1), ElementsAre(2));
}

TEST(PipelineLayout, IsRefusedWhereMegatronLmRefusesIt) {
  EXPECT_THAT(layout_error("Ett|tL", 4, 2), HasSubstr("3 layers on 2 stages; the plan has 4"));
  EXPECT_THAT(layout_error("Ett|t|tL", 4, 2), HasSubstr("4 layers on 3 stages"));
  for (const char* text : {"tt|ttL", "Ett|tt", "tE|tttL", "Ett|ELtt", "EEtt|ttL", "Ett|ttLL"}) {
    EXPECT_THAT(layout_error(text, 4, 2), HasSubstr("one E (embedding)")) << text;
  }
  EXPECT_THAT(layout_error("E tt|ttL", 4, 2), HasSubstr("\" \""));
  EXPECT_THAT(layout_error("E((tt)*2|)*2L", 8, 2), HasSubstr("\"(\""));
}

TEST(PipelineLayout, HasMultiTokenPredictionBesideTheLoss) {
  EXPECT_THAT(layers_of_layout("Et|tm*2L", {2, 2}, 2), ElementsAre(1, 1));
  EXPECT_THAT(layers_of_layout("Et|t|t|mL", {3, 1}, 2), ElementsAre(1, 1, 1, 0));
  EXPECT_THAT(layout_error("Et|tm|mL", 2, 3, 2), HasSubstr("on a stage without the loss"));
  EXPECT_THAT(layout_error("Et|m|L", 1, 3, 1), HasSubstr("on a stage without the loss"));
  EXPECT_THAT(layout_error("Et|mtL", 2, 2, 1), HasSubstr("after all m"));
}

TEST(PipelineLayout, HasAsManyPredictionsAsTheModel) {
  EXPECT_THAT(layout_error("Ett|ttmL", 4, 2), HasSubstr("give --mtp-num-layers 1"));
  EXPECT_THAT(layout_error("Ett|ttL", 4, 2, 1), HasSubstr("the plan has 1"));
}

TEST(PipelineLayout, OfTooManyLayersIsRefused) {
  EXPECT_THAT(layout_error("Et*9999999L", 4, 2), HasSubstr("less often"));
  EXPECT_THAT(layout_error("E(t*1000)*1000t*1000|L", 4, 2), HasSubstr("fewer layers"));
  EXPECT_THAT(layout_error("Et*99999999999999999999L", 4, 2), HasSubstr("99999999999999999999"));
}

}  // namespace
}  // namespace sim
