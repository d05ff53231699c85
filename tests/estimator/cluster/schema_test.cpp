#include "estimator/cluster/schema.h"

#include <gtest/gtest.h>

#include "estimator/cluster/estimate_cluster.h"
#include "estimator/program/program_estimate.h"
#include "tests/estimator/schema_violation.h"
#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

TEST(PlanSchema, TakesPlansAsWrittenAndAsResolved) {
  EXPECT_EQ(violation(plan_schema(), small_tree()), "");
  EXPECT_EQ(violation(plan_schema(), to_json(small_plan())), "");
  EXPECT_EQ(violation(plan_schema(), to_json(meta_plan())), "");
  EXPECT_EQ(violation(plan_schema(), {{"model", "gpt2"}, {"parallelism", {{"data", "auto"}}}}), "");
  EXPECT_EQ(violation(plan_schema(), {{"model", "gpt2"}, {"$schema", "plan.json"}}), "");
}

TEST(PlanSchema, RefusesWhatReadingRefuses) {
  const auto at = [](const Json& changes) {
    Json tree = small_tree();
    tree.merge_patch(changes);
    return violation(plan_schema(), tree);
  };
  EXPECT_EQ(at({{"paralellism", 1}}), "$.paralellism");
  EXPECT_EQ(at({{"parallelism", {{"tensor", "8"}}}}), "$.parallelism.tensor");
  EXPECT_EQ(at({{"training", {{"dtype", "bf17"}}}}), "$.training.dtype");
  EXPECT_EQ(at({{"model", nullptr}}), "$.model");
}

TEST(RankProfileSchema, TakesWhatIsWritten) {
  EXPECT_EQ(violation(document_schema<RankProfile>("x"), to_json(profile_of(small_plan(), 0))), "");
}

TEST(RankProfileSchema, RequiresEveryKeyButOptionals) {
  Json json = to_json(profile_of(small_plan(), 0));
  EXPECT_FALSE(json.contains("out_of_memory"));
  json.erase("peak");
  EXPECT_EQ(violation(document_schema<RankProfile>("x"), json), "$.peak");
}

TEST(ClusterEstimateSchema, TakesWhatIsWritten) {
  const Plan plan = pipeline_plan({{"training", {{"steps", 10}}}});
  EXPECT_EQ(violation(document_schema<ClusterEstimate>("x"),
                      to_json(estimate_cluster(plan, profiles_of(plan)))),
            "");
}

TEST(RankProfileSchema, HasTheRangesOfItsNumbers) {
  Json json = to_json(profile_of(small_plan(), 0));
  json["peak"]["reserved_bytes"] = -1;
  EXPECT_EQ(violation(document_schema<RankProfile>("x"), json), "$.peak.reserved_bytes");
  const Json schema = document_schema<RankProfile>("x");
  EXPECT_EQ(schema["properties"]["world_size"]["minimum"].dump(), "1");
  EXPECT_EQ(plan_schema()["properties"]["cluster"]["properties"]["nodes"]["anyOf"][0]["maximum"],
            1'000'000);
}

TEST(PlanSchema, HasTheRangesAndDefaultsOfTheModel) {
  const Json model = plan_schema()["properties"]["model"]["anyOf"][1]["properties"];
  EXPECT_EQ(model["num_layers"]["minimum"], 1);
  EXPECT_EQ(model["num_layers"]["maximum"], 4096);
  EXPECT_FALSE(model["num_layers"].contains("default")) << "somebody has to say it";
  EXPECT_EQ(model["rotary_base"]["default"], 10'000);
  EXPECT_EQ(model["kv_lora_rank"]["default"], 512);
  EXPECT_EQ(model["hidden_dropout"]["default"], 0.1);
  EXPECT_FALSE(model["overrides"]["properties"]["hidden_dropout"].contains("default"));
  for (const auto& [key, property] : model.items()) {
    const bool is_number = property["type"] == "integer" || property["type"] == "number";
    EXPECT_TRUE(!is_number || property.contains("minimum")) << key;
  }
}

TEST(PlanSchema, HasDefaultsThatDoNotFollowFromOthers) {
  const Json parts = plan_schema()["properties"];
  EXPECT_EQ(parts["parallelism"]["properties"]["tensor"]["default"], 1);
  EXPECT_EQ(parts["training"]["properties"]["optimizer"]["default"], "adamw");
  EXPECT_FALSE(parts["training"]["properties"]["global_batch_size"].contains("default"));
  EXPECT_FALSE(document_schema<RankProfile>("x")["properties"]["world_size"].contains("default"));
}

TEST(DocumentSchema, TellsOneDocumentFromAnother) {
  EXPECT_EQ(violation(document_schema<ProgramEstimate>("x"), to_json(ClusterEstimate{})),
            "$.command");
  Json json = to_json(ProgramEstimate{});
  EXPECT_EQ(violation(document_schema<ProgramEstimate>("x"), json), "");
  json["kind"] = "cluster_estimate";
  EXPECT_EQ(violation(document_schema<ProgramEstimate>("x"), json), "$.kind");
}

TEST(Schemas, DescribeEveryKey) {
  for (const Json& schema :
       {plan_schema(), document_schema<RankProfile>("x"), document_schema<ClusterEstimate>("x")}) {
    EXPECT_EQ(schema["$schema"], "http://json-schema.org/draft-07/schema#");
    EXPECT_EQ(schema["additionalProperties"], false);
    for (const auto& [key, property] : schema["properties"].items()) {
      EXPECT_TRUE(property.contains("description")) << key;
    }
  }
}

}  // namespace
}  // namespace estimator
