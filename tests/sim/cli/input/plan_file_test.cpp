#include "sim/cli/input/plan_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <fstream>

#include <cstdio>
#include <filesystem>

#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "estimator/plan/plan.h"
#include "estimator/resolve/resolve_plan.h"
#include "sim/cli/values/yaml_tree.h"
#include "tests/paths.h"
#include "tests/sim/cli/onerank_program.h"

namespace sim {
namespace {

using estimator::Json;
using testing::AllOf;
using testing::HasSubstr;

std::string yaml_error(const std::string& text) {
  try {
    parse_yaml(text, "plan.yaml");
  } catch (const estimator::UserError& error) {
    return error.what();
  }
  return "";
}

Json tree_of(const std::string& path) { return read_plan_or_other_file(path).tree.json(); }

class PlanFileReading : public OnerankProgram {
 protected:
  std::string error_of(const std::string& file) {
    try {
      read_plan_or_other_file(file);
    } catch (const estimator::UserError& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(PlanFileReading, YamlGivesTheTreeThatJsonGives) {
  const std::string json = R"({"name": "8", "model": {"preset": "gpt2", "hidden_dropout": 0.1},
      "parallelism": {"tensor": 2, "data": null, "sequence_parallel": true, "layers_per_stage": [6, 6]},
      "training": {"tokens": 3e11}})";
  const std::string yaml = R"(
name: "8"          # quoted: text
model: {preset: gpt2, hidden_dropout: 0.1}
parallelism:
  tensor: 2
  data: ~
  sequence_parallel: true
  layers_per_stage:
    - 6
    - 6
training:
  tokens: 3e11
)";
  EXPECT_EQ(tree_of(write("plan.json", json)), tree_of(write("plan.YML", yaml)));
}

TEST(YamlTree, TypesOnlyUnquotedScalarsOfTheCoreSchema) {
  EXPECT_EQ(parse_yaml("[8, '8', true, yes, .nan, 0x10, 1e3, -2, null, ~, '']", "p"),
            Json({8, "8", true, "yes", ".nan", "0x10", 1000.0, -2, nullptr, nullptr, ""}));
}

TEST(YamlTree, NamesTheLineAndColumnOfAnError) {
  EXPECT_THAT(yaml_error("a: 1\nb: [1, 2\n"), AllOf(HasSubstr("plan.yaml"), HasSubstr("line 3")));
}

TEST(PlanOrOtherFile, RefusesFilesOfOtherPrograms) {
  const auto refusal = [](const std::string& name, const std::string& text) -> std::string {
    const std::string path = testing::TempDir() + name;
    std::ofstream(path) << text;
    try {
      read_plan_or_other_file(path);
    } catch (const estimator::UserError& error) {
      return error.what();
    }
    return "";
  };
  const std::string foreign = "is no plan, and of no program";
  EXPECT_THAT(refusal("litgpt.yaml", "checkpoint_dir: x\nout_dir: y\nlora_r: 8\n"),
              testing::HasSubstr(foreign));
  EXPECT_THAT(refusal("train.py", "import torch\n"), testing::HasSubstr(foreign));
  EXPECT_EQ(refusal("plan.yaml", "model: llama3-8b\ncluster: {gpu: h100}\nmodell: x\n"), "");
  EXPECT_EQ(refusal("mark.json", "\xEF\xBB\xBF{\"model\": \"llama3-8b\"}"), "");
}

TEST(YamlTree, RefusesDuplicateKeysAndASecondDocument) {
  EXPECT_THAT(yaml_error("a: 1\nb: 2\na: 3\n"),
              AllOf(HasSubstr("a stands twice"), HasSubstr("line 3")));
  EXPECT_THAT(yaml_error("a: 1\n---\nb: 2\n"), HasSubstr("second document"));
}

TEST(YamlTree, RefusesAliasesThatStandForATreeWithoutEnd) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::vector<std::string> ten_times_the_last(10, fmt::format("*a{}", i - 1));
    text += fmt::format("a{0}: &a{0} [{1}]\n", i, fmt::join(ten_times_the_last, ", "));
  }
  EXPECT_THAT(yaml_error(text), HasSubstr("deep or large"));
}

// yaml-cpp 0.7 makes of these texts documents without end.
TEST(YamlTree, EndsWhereACommaOrABracketIsTooMuch) {
  for (const char* text : {"{},", "[],", "{},x", "{\"a\":1},\"b\":{", "a: {}\n--- {},"}) {
    EXPECT_THAT(yaml_error(text), HasSubstr("plan.yaml is not a valid YAML plan")) << text;
  }
}

TEST(YamlTree, RefusesNestingThatWouldOverflowTheStack) {
  std::string lists, maps;
  for (int depth = 0; depth < 10'000; ++depth) {
    lists += "- ";
    maps += std::string(static_cast<std::size_t>(depth % 700), ' ') + "a:\n";
  }
  EXPECT_THAT(yaml_error(lists + "x"), HasSubstr("deep or large"));
  EXPECT_THAT(yaml_error(maps), HasSubstr("plan.yaml is not a valid YAML plan"));
}

TEST_F(PlanFileReading, ThatIsNotThereGetsTheHelpThatItsNameCallsFor) {
  EXPECT_THAT(error_of("llama3-8b"), HasSubstr("write --model llama3-8b"));
  EXPECT_THAT(error_of("true"), HasSubstr("a switch does not take a value"));
  write("mine.json", "{}");
  EXPECT_THAT(error_of(path("mine")), HasSubstr("did you mean " + path("mine.json")));
  EXPECT_THAT(error_of(path(std::string(300, 'x'))), HasSubstr("File name too long"));
}

TEST_F(PlanFileReading, OnStandardInputIsYamlUnlessItBeginsWithABracket) {
  const auto read = [&](const std::string& text) {
    EXPECT_NE(std::freopen(write("stdin", text).c_str(), "r", stdin), nullptr);
    return read_plan_or_other_file("-").tree.json();
  };
  EXPECT_EQ(read("\nmodel: gpt2\n"), Json({{"model", "gpt2"}}));
  EXPECT_EQ(read(" {\"model\": \"gpt2\"}"), Json({{"model", "gpt2"}}));
  EXPECT_THROW(
      {
        try {
          read("{\"model\": ");
        } catch (const estimator::UserError& error) {
          EXPECT_THAT(error.what(), HasSubstr("standard input is not valid JSON"));
          throw;
        }
      },
      estimator::UserError);
}

TEST_F(PlanFileReading, ThatIsNotUtf8IsRefused) {
  EXPECT_THAT(error_of(write("plan.yaml", "name: \"\xff\"\n")),
              AllOf(HasSubstr("is not UTF-8 text"), HasSubstr("byte 7")));
  EXPECT_THAT(error_of(write("plan.json", "{\"name\": \"\xe9\"}")), HasSubstr("is not UTF-8"));
}

TEST(YamlTree, RefusesMoreKeysThanAnObjectMayHave) {
  std::string text;
  for (int i = 0; i <= 1000; ++i) text += fmt::format("k{}: 1\n", i);
  EXPECT_THAT(yaml_error(text), AllOf(HasSubstr("more than 1000 keys"), HasSubstr("line 1001")));
}

TEST_F(PlanFileReading, EmptyBinaryHugeOrDeepOnesAreRefusedWithTheReason) {
  EXPECT_THAT(error_of(write("empty.json", " \n")), HasSubstr("is empty"));
  EXPECT_THAT(error_of(write("binary.json", std::string("{\"a\":\0}", 7))),
              HasSubstr("not a text file"));
  EXPECT_THAT(error_of(write("huge.json", std::string(2 << 20, ' '))), HasSubstr("too large"));
  EXPECT_THAT(error_of(write("deep.json", std::string(100'000, '['))), HasSubstr("too deeply"));
  EXPECT_THAT(error_of(write("deep.yaml", std::string(100'000, '['))), HasSubstr("too deeply"));
  EXPECT_THAT(error_of("/dev/zero"), HasSubstr("it is a device"));
}

TEST_F(PlanFileReading, ATruncatedOneIsRefusedWithItsLine) {
  EXPECT_THAT(error_of(write("plan.json", "{\"model\": \"gpt2\",\n \"cluster\": {\"gpu\"")),
              AllOf(HasSubstr("not valid JSON"), HasSubstr("line 2")));
}

TEST_F(PlanFileReading, ThatCannotBeReadIsNamed) {
  EXPECT_THAT(error_of(path("none.json")),
              AllOf(HasSubstr("none.json"), HasSubstr("No such file")));
  EXPECT_THAT(error_of(path("")), HasSubstr("folder"));
}

TEST(PlansToTry, AreValidAndNameTheirFrameworkAndAttention) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(tests::kPlans)) {
    const std::string path = entry.path().string();
    const Json tree = tree_of(path);
    EXPECT_NO_THROW(estimator::resolve_plan(tree, {.origin = path})) << path;
    EXPECT_EQ(tree["name"], entry.path().stem().string());
    EXPECT_TRUE(tree["training"].contains("framework")) << path;
    EXPECT_TRUE(tree["training"].contains("attention")) << path;
    ++count;
  }
  EXPECT_GE(count, 5);
}

}  // namespace
}  // namespace sim
