#include "estimator/base/text.h"

#include <gtest/gtest.h>

namespace estimator {
namespace {

using namespace std::string_literals;

TEST(FindNonUtf8, TakesEveryLengthOfCharacter) {
  EXPECT_EQ(find_non_utf8("plain \n\t \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \xf4\x8f\xbf\xbf"s),
            std::string::npos);
  EXPECT_EQ(find_non_utf8(""), std::string::npos);
  EXPECT_EQ(find_non_utf8("a\0b"s), std::string::npos);
}

// Table 3-8 and section 3.9 of Unicode 15.0: stray and missing continuations, overlong forms,
// surrogates, more than U+10FFFF, bytes that begin nothing.
TEST(FindNonUtf8, FindsTheFirstByteOfWhatIsNone) {
  for (const std::string& bad : {"\xff"s,
                                 "\xe9"s,
                                 "\x80"s,
                                 "\xc0\xaf"s,
                                 "\xc1\xbf"s,
                                 "\xe0\x9f\xbf"s,
                                 "\xed\xa0\x80"s,
                                 "\xf0\x8f\xbf\xbf"s,
                                 "\xf4\x90\x80\x80"s,
                                 "\xf5\x80\x80\x80"s,
                                 "\xe2\x82"s,
                                 "\xf0\x9f\x98"s,
                                 "\xe2\x28\xa1"s,
                                 "\xf0\x9f\x28\x80"s}) {
    EXPECT_EQ(find_non_utf8("ab" + bad), 2u) << testing::PrintToString(bad);
  }
}

TEST(Printable, KeepsTextAndNewlines) {
  const std::string text = "fits: 79.19 GiB \xe2\x96\x88 caf\xc3\xa9 \xc2\xa0\n  next\n";
  EXPECT_EQ(printable(text), text);
  EXPECT_EQ(printable(printable(text)), text);
}

TEST(Printable, EscapesWhatATerminalObeys) {
  EXPECT_EQ(printable("\x1b]0;pwn\a"), "\\u001b]0;pwn\\u0007");
  EXPECT_EQ(printable("a\0b\r\t\x7f"s), "a\\u0000b\\u000d\\u0009\\u007f");
  EXPECT_EQ(printable("\xc2\x80 \xc2\x9b\x32J \xc2\x9f"), "\\u0080 \\u009b2J \\u009f");
  EXPECT_EQ(printable("caf\xe9"), "caf\\xe9");
}

TEST(ShellWord, IsQuotedWhereAShellWouldChangeIt) {
  EXPECT_EQ(shell_word("--tp"), "--tp");
  EXPECT_EQ(shell_word("1,2,4"), "1,2,4");
  EXPECT_EQ(shell_word("my job"), "'my job'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word("$HOME"), "'$HOME'");
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace estimator
