#include "estimator/cluster/schema.h"

#include <string>

#include "estimator/plan/options.h"
#include "estimator/profile/peak_snapshot.h"

namespace estimator {
namespace {

Json described(Json schema, const std::string& description) {
  schema["description"] = description;
  return schema;
}

Json text(const std::string& description) {
  return described(schema_of<std::string>(RequiredKeys::kNoKeys), description);
}

/// A preset's name, or an object of a preset, overrides, and ModelConfig's own keys.
Json model_schema() {
  const Json shape = schema_of<ModelConfig>(RequiredKeys::kNoKeys);
  Json object = shape;
  object["properties"]["preset"] = text("a model of `onerank list models`");
  object["properties"]["overrides"] = described(shape, "what differs from the preset");
  return described(
      {{"anyOf", Json::array({schema_of<std::string>(RequiredKeys::kNoKeys), object})}},
      "a preset's name, or the model's shape");
}

}  // namespace

Json schema_detail::with_range(Json schema, Range range) {
  const auto end = [&](const char* key, double value) {
    if (!std::isfinite(value)) return;
    schema[key] = is_whole(value) ? Json(static_cast<int64_t>(value)) : Json(value);
  };
  end("minimum", range.least);
  end("maximum", range.most);
  return schema;
}

Json titled_schema(const std::string& title, const Json& schema) {
  Json result = {{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", title}};
  result.update(schema);
  return result;
}

Json plan_schema() {
  const auto part = []<class T>(T, const char* description) {
    return described(schema_of<T>(RequiredKeys::kNoKeys), description);
  };
  const Json properties = {
      {"$schema", text("for editors; Onerank does not look at it")},
      {"name", text("of the plan")},
      {"model", model_schema()},
      {"cluster", part(ClusterConfig{}, "the machines")},
      {"parallelism", part(ParallelConfig{}, "how the model is laid over the cluster")},
      {"training", part(TrainingConfig{}, "how it is trained")},
      {"memory", part(MemoryConfig{}, "the allocator, and what must stay free")},
      {"time", part(TimeConfig{}, "what decides how long things take")},
      {"reliability", part(ReliabilityConfig{}, "failures and checkpoints")}};
  return titled_schema("Onerank plan",
                       {{"type", "object"},
                        {"additionalProperties", false},
                        {"properties", properties},
                        {"required", Json::array({"model"})}});
}

Json peak_snapshot_schema() {
  Json header = document_schema<PeakSnapshotHeader>("the first line");
  header.erase("$schema");
  return titled_schema(
      "Onerank peak snapshot, each line",
      {{"anyOf", Json::array({header, schema_of<PeakAllocation>(RequiredKeys::kAllButOptional)})}});
}

}  // namespace estimator
