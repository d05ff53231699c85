#include "estimator/plan/dialects.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

TEST(Dialects, EveryNameHasOneRowThatSaysWhatItMeans) {
  std::set<Dialect> seen;
  for (const DialectTraits& traits : dialects()) {
    EXPECT_TRUE(seen.insert(traits.dialect).second);
    EXPECT_FALSE(traits.framework.empty());
    EXPECT_FALSE(traits.notes.empty());
  }
  for (const auto& [dialect, name] : enum_names(Dialect{})) {
    EXPECT_EQ(traits_of(dialect).dialect, dialect) << name;
  }
}

// megatron/training/arguments.py: --make-vocab-size-divisible-by 128.
TEST(Dialects, MegatronPadsTheVocabularyAndPlainDoesNot) {
  const auto padded = [](const char* dialect) {
    return small_plan({{"training", {{"dialect", dialect}}}}).padded_vocab_size();
  };
  EXPECT_EQ(padded("megatron-lm"), 1024);
  EXPECT_EQ(padded("megatron-deepspeed"), 1024);
  EXPECT_EQ(padded("torchtitan"), 1000);
  EXPECT_EQ(padded("internevo"), 1000);
  EXPECT_EQ(padded("plain"), 1000);
}

TEST(Dialects, InternevoHasNoFullyShardedParameters) {
  const auto complaint = [](int zero_stage) {
    return complaint_about(
        {{"parallelism", {{"zero_stage", zero_stage}}}, {"training", {{"dialect", "internevo"}}}});
  };
  EXPECT_EQ(complaint(1), "");
  EXPECT_NE(complaint(3).find("which the dialect does not have"), std::string::npos);
}

TEST(Dialects, MegatronsOwnKeysAreRefusedElsewhere) {
  for (const Json& training : {Json{{"transformer_impl", "local"}},
                               Json{{"cross_entropy_fusion", "te"}},
                               Json{{"gradient_accumulation_fusion", false}},
                               Json{{"attention_mask_in_dataloader", true}}}) {
    const Json changes = {{"training", training}};
    EXPECT_EQ(complaint_about(changes), "");
    Json elsewhere = changes;
    elsewhere["training"]["dialect"] = "plain";
    EXPECT_NE(complaint_about(elsewhere).find("the key belongs to Megatron-LM"), std::string::npos)
        << training;
  }
}

}  // namespace
}  // namespace estimator
