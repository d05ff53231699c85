#include "sim/cli/values/token_words.h"

#include <gmock/gmock.h>

#include "estimator/base/errors.h"
#include "estimator/base/fields.h"

namespace sim {
namespace {

using estimator::Json;
using testing::HasSubstr;

// 20 x 8,030,261,248 parameters of Llama 3 8B.
TEST(TokenWords, ChinchillaIs20TokensForEachParameter) {
  Json tree = {{"model", "llama3-8b"}, {"training", {{"tokens", "chinchilla"}}}};
  EXPECT_THAT(read_token_rule(tree, "plan"), HasSubstr("160,605,224,960 tokens"));
  EXPECT_EQ(tree["training"]["tokens"], 160'605'224'960);
}

TEST(TokenWords, NumbersStayAsTheyAre) {
  Json tree = {{"model", "llama3-8b"}, {"training", {{"tokens", 5}}}};
  EXPECT_EQ(read_token_rule(tree, "plan"), "");
  EXPECT_EQ(tree["training"]["tokens"], 5);
}

TEST(TokenWords, NeedAModel) {
  Json tree = {{"training", {{"tokens", "chinchilla"}}}};
  EXPECT_THROW(read_token_rule(tree, "plan"), estimator::UserError);
}

}  // namespace
}  // namespace sim
