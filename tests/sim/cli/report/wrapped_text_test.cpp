#include "sim/cli/report/wrapped_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sim {
namespace {

using testing::ElementsAre;

TEST(WrappedText, FillsLinesWithWholeWords) {
  EXPECT_THAT(wrapped_lines("one two three four", 9), ElementsAre("one two", "three", "four"));
  EXPECT_THAT(wrapped_lines("a expandable_segments b", 5),
              ElementsAre("a", "expandable_segments", "b"));
  EXPECT_THAT(wrapped_lines("", 5), ElementsAre(""));
}

TEST(WrappedText, HangsBelowTheTextThatBeginsTheFirstLine) {
  EXPECT_EQ(hanging_text("  - ", "the first words of a line and more", 32),
            "  - the first words of a line\n    and more\n");
}

TEST(WrappedText, KeepsColumnsForWordsWhereThereIsNoRoom) {
  EXPECT_EQ(hanging_text("    ", "twenty-four columns here", 10), "    twenty-four columns here\n");
}

TEST(WrappedText, WrapsOnlyTheLinesThatAreTooLong) {
  EXPECT_EQ(with_wrapped_lines("short\n  - an item that goes on and on\nend\n", 28),
            "short\n  - an item that goes on and\n    on\nend\n");
  EXPECT_EQ(with_wrapped_lines("  1. high: the first words of it", 28),
            "  1. high: the first words of\n     it");
  EXPECT_EQ(with_wrapped_lines("a line of some words that goes on", 28),
            "a line of some words that\n  goes on");
}

}  // namespace
}  // namespace sim
