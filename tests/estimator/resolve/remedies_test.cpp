#include "estimator/resolve/remedies.h"

#include <gtest/gtest.h>

#include <regex>

#include "estimator/resolve/plan_tree.h"
#include "estimator/resolve/resolve_plan.h"
#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

Json tree_with(const Json& changes) {
  Json tree = small_tree();
  tree.merge_patch(changes);
  return tree;
}

/// The help of the first problem.
std::string help_for(const Json& tree) {
  try {
    resolve_plan(tree, {});
  } catch (const UserError& error) {
    return error.problems().front().help;
  }
  return "";
}

/// The numbers of "a pipeline size of 1, 2".
std::vector<int64_t> values_after(const std::string& help, const std::string& words) {
  std::vector<int64_t> values;
  const std::size_t at = help.find(words);
  if (at == std::string::npos) return values;
  const std::string rest = help.substr(at + words.size());
  const std::string list = rest.substr(0, rest.find_first_not_of("0123456789, "));
  const std::regex number("[0-9]+");
  for (std::sregex_iterator i(list.begin(), list.end(), number), end; i != end; ++i) {
    values.push_back(std::stoll(i->str()));
  }
  return values;
}

// 126 layers divide by 6, 7 and 9 stages, but 512 GPUs of 8 tensor ranks each do not.
TEST(Remedies, OfAPipelineDivideTheRanksToo) {
  const Json tree = {
      {"model", "llama3-405b"},
      {"cluster", {{"gpu", "h100-sxm"}, {"nodes", 64}}},
      {"parallelism", {{"tensor", 8}, {"pipeline", 8}, {"sequence_parallel", true}}}};
  EXPECT_EQ(help_for(tree),
            "use a pipeline size of 1, 2, or --num-layers-per-stage 15,16,16,16,16,16,16,15");
}

// 8 experts on 8 ranks of a stage: with the 2 tensor ranks, which cut them, that is 16.
TEST(Remedies, OfExpertsThatAreCutNameWholeOnes) {
  const Json tree =
      tree_with({{"model", {{"num_experts", 8}, {"add_bias_linear", false}}},
                 {"parallelism", {{"tensor", 2}, {"expert", 8}, {"sequence_parallel", true}}}});
  EXPECT_EQ(help_for(tree),
            "use --expert-tensor-parallel-size 1, or an expert parallel size of 1, 2, 4");
}

TEST(Remedies, ThatAreOfferedKeepAllRules) {
  struct Offer {
    const char* words;
    const char* path;
  };
  const std::vector<Offer> offers = {
      {"a tensor parallel size of ", "parallelism.tensor"},
      {"a pipeline size of ", "parallelism.pipeline"},
      {"an expert parallel size of ", "parallelism.expert"},
      {"--expert-tensor-parallel-size ", "parallelism.expert_tensor"},
      {"use ", "parallelism.virtual_stages"}};
  int tried = 0;
  for (const int64_t tensor : {1, 2, 3}) {
    for (const int64_t pipeline : {1, 3, 6}) {
      for (const int64_t expert : {0, 3, 8, 16}) {
        Json changes = {
            {"parallelism",
             {{"tensor", tensor}, {"pipeline", pipeline}, {"sequence_parallel", true}}}};
        changes["cluster"] = {{"nodes", 3}};
        changes["training"] = {{"global_batch_size", 144}};
        if (expert > 0) {
          changes["model"] = {{"num_experts", 8}, {"add_bias_linear", false}};
          changes["parallelism"]["expert"] = expert;
        }
        const Json tree = tree_with(changes);
        std::vector<Problem> problems;
        try {
          resolve_plan(tree, {});
        } catch (const UserError& error) {
          problems = error.problems();
        }
        if (problems.size() != 1) continue;  // else others stay broken
        for (const Offer& offer : offers) {
          const bool virtual_stages = problems[0].help.find("virtual stages") != std::string::npos;
          if (std::string(offer.words) == "use " && !virtual_stages) continue;
          for (const int64_t value : values_after(problems[0].help, offer.words)) {
            Json changed = tree;
            set_in_tree(changed, offer.path, value, "test");
            EXPECT_NO_THROW(resolve_plan(changed, {})) << problems[0].help << " in " << tree;
            ++tried;
          }
        }
      }
    }
  }
  EXPECT_GT(tried, 10);
}

}  // namespace
}  // namespace estimator
