#include "estimator/resolve/sized_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "estimator/base/fields.h"
#include "estimator/plan/plan.h"
#include "estimator/resolve/resolve_plan.h"

namespace estimator {
namespace {

// The shapes of Touvron et al. 2023, table 2, with 32,000 tokens.
TEST(SizedModel, IsLlamaWhereLlamaHasTheSize) {
  const auto of_7b = sized_model("7b");
  ASSERT_TRUE(of_7b);
  EXPECT_EQ(of_7b->config.num_layers, 32);
  EXPECT_EQ(of_7b->config.hidden_size, 4096);
  EXPECT_EQ(of_7b->parameters, 6'738'415'616);
  const auto of_13b = sized_model("13B");
  ASSERT_TRUE(of_13b);
  EXPECT_EQ(of_13b->config.num_layers, 40);
  EXPECT_EQ(of_13b->config.ffn_hidden_size, 13'824);
  EXPECT_EQ(of_13b->parameters, 13'015'864'320);
}

TEST(SizedModel, HasTheSizeWithinATenth) {
  for (const auto& [name, size] : {std::pair{"350m", 350e6},
                                   {"1b", 1e9},
                                   {"1.5B", 1.5e9},
                                   {"3b", 3e9},
                                   {"20b", 20e9},
                                   {"65b", 65e9},
                                   {"175b", 175e9},
                                   {"1t", 1e12}}) {
    const auto model = sized_model(name);
    ASSERT_TRUE(model) << name;
    const auto parameters = static_cast<double>(model->parameters);
    EXPECT_LT(std::abs(parameters / size - 1), 0.1) << name << " has " << parameters;
  }
}

TEST(SizedModel, OtherNamesAreNoSizes) {
  for (const char* name :
       {"", "b", "13", "13bb", "llama2-13b", "-7b", "0b", "1m", "1e9b", "nanb", "13g"}) {
    EXPECT_FALSE(sized_model(name)) << name;
  }
}

TEST(SizedModel, APresetsNameIsThePreset) {
  EXPECT_EQ(named_model("llama3-8b")->parameters, 8'030'261'248);
  EXPECT_EQ(named_model("7b")->parameters, 6'738'415'616);
  EXPECT_FALSE(named_model("gpt5"));
}

TEST(SizedModel, OfAResolvedPlanIsReadBack) {
  const Plan plan =
      resolve_plan({{"model", "13b"}, {"cluster", {{"gpu", "a100"}, {"nodes", 1}}}}, PlanContext{});
  EXPECT_EQ(plan.model_preset, "13b");
  EXPECT_EQ(to_json(resolve_plan(to_json(plan), PlanContext{})), to_json(plan));
}

}  // namespace
}  // namespace estimator
