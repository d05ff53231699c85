#include "estimator/base/field_words.h"

#include <gmock/gmock.h>

#include <set>

namespace estimator {
namespace {

TEST(FieldWords, AreFoundInEverySpelling) {
  for (const char* typed : {"fp8", "--fp8", "--fp8-format", "FP8_recipe", "fp8 format"}) {
    const FieldWord* word = find_field_word(typed);
    ASSERT_NE(word, nullptr) << typed;
    EXPECT_THAT(word->what, testing::HasSubstr("8 bits"));
  }
  EXPECT_NE(find_field_word("google/gemma-3-27b-it"), nullptr);
  for (const char* typed : {"unsloth/llama-3-8b-bnb-4bit", "Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4"}) {
    const FieldWord* word = find_field_word(typed);
    ASSERT_NE(word, nullptr) << typed;
    EXPECT_THAT(word->what, testing::HasSubstr("quantized"));
  }
  EXPECT_NE(find_field_word("NVIDIA H100 80GB HBM3 MIG 1g.10gb"), nullptr);
  EXPECT_NE(find_field_word("--zero3"), nullptr);
  EXPECT_EQ(find_field_word("fp8-4bitx"), find_field_word("fp8-x"));
  EXPECT_EQ(find_field_word(""), nullptr);
  EXPECT_EQ(find_field_word("tp"), nullptr);
  EXPECT_EQ(find_field_word("lo"), nullptr);
  EXPECT_EQ(find_field_word("--moe-router-padding-for-fp8"), nullptr);
}

TEST(FieldWords, MayBeginAndEndWithAnything) {
  EXPECT_EQ(find_field_word("a-mig-b"), find_field_word("h100-mig-1g"));
  EXPECT_EQ(find_field_word("migrate"), nullptr);
  EXPECT_EQ(find_field_word("awq-"), nullptr);
}

TEST(FieldWords, StandOnceAndHaveAWayOut) {
  std::set<std::string> seen;
  for (const FieldWord& row : field_words()) {
    EXPECT_FALSE(row.what.empty());
    EXPECT_FALSE(row.instead.empty()) << row.what;
    for (const std::string& word : row.words) EXPECT_TRUE(seen.insert(word).second) << word;
  }
}

}  // namespace
}  // namespace estimator
