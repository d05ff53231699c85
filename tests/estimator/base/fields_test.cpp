#include "estimator/base/fields.h"

#include <gtest/gtest.h>

#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

enum class Color { kRed, kGreen };
constexpr std::array<EnumName<Color>, 2> enum_names(Color) {
  return {{{Color::kRed, "red"}, {Color::kGreen, "green"}}};
}

struct Inner {
  double ratio = 0.5;
};
template <class Visitor>
void visit_fields(Visitor& visit, Inner& inner) {
  visit("ratio", inner.ratio, "a number");
}

struct Outer {
  int64_t count = 3;
  bool on = false;
  Color color = Color::kRed;
  std::optional<int64_t> maybe;
  std::vector<std::vector<int64_t>> sizes;
  std::vector<Inner> inners;
  std::string text;
};
template <class Visitor>
void visit_fields(Visitor& visit, Outer& outer) {
  visit("count", outer.count, {"how many", Range{-1, 1e14, "8 for eight"}});
  visit("on", outer.on, "yes or no");
  visit("color", outer.color, "which");
  visit("maybe", outer.maybe, {"may be absent", Range{1, 5}});
  visit("sizes", outer.sizes, {"a list of lists", Range{0, 9}});
  visit("inners", outer.inners, "a list");
  visit("text", outer.text, "words");
}

Outer read(const std::string& text, RequiredKeys required = RequiredKeys::kNoKeys) {
  FieldReader reader("doc", required);
  Outer outer;
  reader.read(Json::parse(text), outer, "");
  reader.throw_if_any();
  return outer;
}

std::string complaint(const std::string& text, RequiredKeys required = RequiredKeys::kNoKeys) {
  return complaint_of([&] { read(text, required); });
}

TEST(Fields, ReadEveryKind) {
  const Outer outer = read(R"({"count": 7, "on": true, "color": "green", "maybe": 2,
                               "inners": [{"ratio": 1}, {}], "text": "hi"})");
  EXPECT_EQ(outer.count, 7);
  EXPECT_TRUE(outer.on);
  EXPECT_EQ(outer.color, Color::kGreen);
  EXPECT_EQ(outer.maybe, 2);
  ASSERT_EQ(outer.inners.size(), 2u);
  EXPECT_EQ(outer.inners[0].ratio, 1);
  EXPECT_EQ(outer.inners[1].ratio, 0.5);
  EXPECT_EQ(outer.text, "hi");
}

TEST(Fields, KeepDefaultsForAbsentKeys) { EXPECT_EQ(read("{}").count, 3); }

TEST(Fields, ReadAutoAndNullAsEmpty) {
  EXPECT_FALSE(read(R"({"maybe": "auto"})").maybe.has_value());
  EXPECT_FALSE(read(R"({"maybe": null})").maybe.has_value());
}

TEST(Fields, ReadWholeNumbersAsPeopleWriteThem) {
  EXPECT_EQ(read(R"({"count": 15e12})").count, 15000000000000);
}

TEST(Fields, WrittenReadBackEqual) {
  const char* text =
      R"({"count":7,"on":true,"color":"green","maybe":2,"sizes":[],"inners":[{"ratio":0.1}],"text":"x"})";
  EXPECT_EQ(to_json(read(text)).dump(), text);
}

TEST(Fields, LeaveOutEmptyOptionals) { EXPECT_FALSE(to_json(Outer{}).contains("maybe")); }

TEST(Fields, ComplainOfUnknownKeysWithTheNearestOne) {
  EXPECT_EQ(complaint(R"({"cuont": 1})"),
            "error: unknown key\n  doc: cuont\n  help: did you mean count?\n");
}

TEST(Fields, ComplainWithThePlaceAndTheValue) {
  EXPECT_EQ(complaint(R"({"inners": [{}, {"ratio": "much"}]})"),
            "error: a finite number is needed here\n  doc: inners[1].ratio = \"much\"\n"
            "  help: write a number such as 0.1\n");
}

TEST(Fields, ComplainOfEveryWrongType) {
  for (const char* text : {R"({"count": 1.5})",
                           R"({"count": "8"})",
                           R"({"count": 1e300})",
                           R"({"count": 99999999999999999999})",
                           R"({"count": true})",
                           R"({"on": 1})",
                           R"({"color": "blue"})",
                           R"({"color": 1})",
                           R"({"inners": {}})",
                           R"({"inners": [1]})",
                           R"({"text": 5})",
                           R"([])"}) {
    EXPECT_NE(complaint(text), "") << text;
  }
}

TEST(Fields, ComplainOfNumbersOutOfTheirRange) {
  EXPECT_EQ(complaint(R"({"count": -2})"),
            "error: a number is out of range\n  doc: count = -2\n"
            "  help: use a number from -1 to 100,000,000,000,000: 8 for eight\n");
  EXPECT_EQ(complaint(R"({"maybe": 6})"),
            "error: a number is out of range\n  doc: maybe = 6\n"
            "  help: use a number from 1 to 5\n");
  EXPECT_EQ(complaint(R"({"sizes": [[1, 2], [3, 10]]})"),
            "error: a number is out of range\n  doc: sizes[1][1] = 10\n"
            "  help: use a number from 0 to 9\n");
  EXPECT_EQ(complaint(R"({"maybe": 5, "sizes": [[0, 9]], "count": -1})"), "");
}

TEST(Fields, OfDocumentsThatAreWrittenAreAllThereButOptionals) {
  const std::string whole =
      R"({"count": 1, "on": true, "color": "red", "sizes": [], "inners": [{"ratio": 1}], "text": ""})";
  EXPECT_EQ(complaint(whole, RequiredKeys::kAllButOptional), "");
  EXPECT_EQ(complaint(R"({"count": 1, "on": true, "color": "red", "sizes": [],
                          "inners": [{"ratio": 1}, {}]})",
                      RequiredKeys::kAllButOptional),
            "error: a key is missing\n  doc: inners[1].ratio\n  help: it is needed: a number\n"
            "error: a key is missing\n  doc: text\n  help: it is needed: words\n");
}

TEST(Fields, ShowTheFirstOfManyProblemsAndHowManyMoreThereAre) {
  std::string text = R"({"sizes": [[-1)";
  for (int i = 1; i < 100'000; ++i) text += ",-1";
  const std::string shown = complaint(text + "]]}");
  EXPECT_NE(shown.find("doc: sizes[0][19] = -1"), std::string::npos);
  EXPECT_EQ(shown.find("doc: sizes[0][20] = -1"), std::string::npos);
  EXPECT_NE(shown.find("error: and 99980 problems more"), std::string::npos);
  EXPECT_LT(shown.size(), 3000u);
}

TEST(Fields, AreNotWrittenWhereTheyAreNotFinite) {
  for (const double ratio : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    EXPECT_THROW(to_json(Inner{ratio}), std::logic_error);
  }
}

TEST(Fields, CollectEveryProblem) {
  try {
    read(R"({"count": "x", "on": "y", "nothing": 1})");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(error.problems().size(), 3u);
  }
}

}  // namespace
}  // namespace estimator
