#include "estimator/cluster/schema.h"

#include <gtest/gtest.h>

#include "estimator/cluster/estimate_cluster.h"
#include "tests/estimator/test_plans.h"

namespace estimator {
namespace {

bool has_type(const Json& json, const std::string& type) {
  if (type == "object") return json.is_object();
  if (type == "array") return json.is_array();
  if (type == "string") return json.is_string();
  if (type == "boolean") return json.is_boolean();
  if (type == "integer") return json.is_number_integer();
  return type == "number" && json.is_number();
}

/// The part of draft-07 that the schemas use. Returns the path of the first violation, or "".
std::string violation(const Json& schema, const Json& json, const std::string& path = "$") {
  if (schema.contains("anyOf")) {
    for (const Json& each : schema["anyOf"]) {
      if (violation(each, json, path).empty()) return "";
    }
    return path;
  }
  if (schema.contains("type") && !has_type(json, schema["type"])) return path;
  if (schema.contains("enum")) {
    const Json& values = schema["enum"];
    if (std::find(values.begin(), values.end(), json) == values.end()) return path;
  }
  for (const Json& key : schema.value("required", Json::array())) {
    if (!json.contains(key)) return path + "." + key.get<std::string>();
  }
  if (json.is_object() && schema.contains("properties")) {
    for (const auto& [key, value] : json.items()) {
      if (!schema["properties"].contains(key)) return path + "." + key;
      std::string inner = violation(schema["properties"][key], value, path + "." + key);
      if (!inner.empty()) return inner;
    }
  }
  if (json.is_array() && schema.contains("items")) {
    for (const Json& item : json) {
      std::string inner = violation(schema["items"], item, path + "[]");
      if (!inner.empty()) return inner;
    }
  }
  return "";
}

TEST(PlanSchema, TakesPlansAsWrittenAndAsResolved) {
  EXPECT_EQ(violation(plan_schema(), small_tree()), "");
  EXPECT_EQ(violation(plan_schema(), to_json(small_plan())), "");
  EXPECT_EQ(violation(plan_schema(), to_json(meta_plan())), "");
  EXPECT_EQ(violation(plan_schema(), {{"model", "gpt2"}, {"parallelism", {{"data", "auto"}}}}), "");
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
  EXPECT_EQ(violation(rank_profile_schema(), to_json(profile_of(small_plan(), 0))), "");
}

TEST(RankProfileSchema, RequiresEveryKeyButOptionals) {
  Json json = to_json(profile_of(small_plan(), 0));
  EXPECT_FALSE(json.contains("out_of_memory"));
  json.erase("peak");
  EXPECT_EQ(violation(rank_profile_schema(), json), "$.peak");
}

TEST(ClusterEstimateSchema, TakesWhatIsWritten) {
  const Plan plan = pipeline_plan({{"training", {{"steps", 10}}}});
  EXPECT_EQ(
      violation(cluster_estimate_schema(), to_json(estimate_cluster(plan, profiles_of(plan)))), "");
}

TEST(Schemas, DescribeEveryKey) {
  for (const Json& schema : {plan_schema(), rank_profile_schema(), cluster_estimate_schema()}) {
    EXPECT_EQ(schema["$schema"], "http://json-schema.org/draft-07/schema#");
    EXPECT_EQ(schema["additionalProperties"], false);
    for (const auto& [key, property] : schema["properties"].items()) {
      EXPECT_TRUE(property.contains("description")) << key;
    }
  }
}

}  // namespace
}  // namespace estimator
