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
  EXPECT_EQ(find_field_word(""), nullptr);
  EXPECT_EQ(find_field_word("tp"), nullptr);
  EXPECT_EQ(find_field_word("lo"), nullptr);
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
