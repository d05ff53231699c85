#include "estimator/cluster/schema.h"

#include <cmath>
#include <string>

#include "estimator/base/units.h"
#include "estimator/plan/options.h"
#include "estimator/profile/peak_snapshot.h"

namespace estimator {
namespace {

Json with_range(Json schema, Range range) {
  const auto end = [&](const char* key, double value) {
    if (!std::isfinite(value)) return;
    schema[key] = is_whole(value) ? Json(static_cast<int64_t>(value)) : Json(value);
  };
  end("minimum", range.least);
  end("maximum", range.most);
  return schema;
}

/// Describes each field as a property of an object.
class PropertyList : public FieldVisitor {
 public:
  explicit PropertyList(RequiredKeys required) : required_(required) {}

  Json properties = Json::object();
  Json required_keys = Json::array();

 private:
  void visit(const char* key, void* value, const FieldType& type, const Option& option) override {
    Json property = schema_of(type, required_, option.range);
    property["description"] = option.help;
    const Json left_out = default_json(key, value, type, option.range);
    if (has_defaults(type) && !left_out.is_null() && left_out != "") property["default"] = left_out;
    properties[key] = std::move(property);
    if (type.form != FieldForm::kOptional) required_keys.push_back(key);
  }

  /// Only where people leave keys out; those of an object are at its own keys.
  bool has_defaults(const FieldType& type) const {
    return required_ == RequiredKeys::kNoKeys && type.form != FieldForm::kObject;
  }

  RequiredKeys required_;
};

Json object_schema(const FieldType& type, RequiredKeys required) {
  PropertyList list(required);
  type.visit_new(list);
  Json schema = {{"type", "object"},
                 {"additionalProperties", false},
                 {"properties", std::move(list.properties)}};
  if (required == RequiredKeys::kAllButOptional) schema["required"] = std::move(list.required_keys);
  return schema;
}

Json described(Json schema, const std::string& description) {
  schema["description"] = description;
  return schema;
}

Json text(const std::string& description) {
  return described(schema_of<std::string>(RequiredKeys::kNoKeys), description);
}

Json without_defaults(Json object) {
  for (auto& [key, property] : object["properties"].items()) property.erase("default");
  return object;
}

/// A preset's name, or an object of a preset, overrides, and ModelConfig's own keys.
Json model_schema() {
  const Json shape = schema_of<ModelConfig>(RequiredKeys::kNoKeys);
  Json object = shape;
  object["properties"]["preset"] = text("a model of `onerank list models`");
  object["properties"]["overrides"] =
      described(without_defaults(shape), "what differs from the preset");
  return described(
      {{"anyOf", Json::array({schema_of<std::string>(RequiredKeys::kNoKeys), object})}},
      "a preset's name, or the model's shape; its defaults hold without a preset");
}

}  // namespace

Json schema_of(const FieldType& type, RequiredKeys required, Range range) {
  switch (type.form) {
    case FieldForm::kSwitch:
      return {{"type", "boolean"}};
    case FieldForm::kWhole:
      return with_range({{"type", "integer"}}, range);
    case FieldForm::kReal:
      return with_range({{"type", "number"}}, range);
    case FieldForm::kText:
      return {{"type", "string"}};
    case FieldForm::kChoice:
      return {{"type", "string"}, {"enum", type.names()}};
    case FieldForm::kOptional: {
      const Json nothing = {{"enum", Json::array({nullptr, "auto"})}};
      return {{"anyOf", Json::array({schema_of(*type.inner, required, range), nothing})}};
    }
    case FieldForm::kList:
      return {{"type", "array"}, {"items", schema_of(*type.inner, required, range)}};
    case FieldForm::kObject:
      return object_schema(type, required);
    case FieldForm::kJson:
      return {{"type", "object"}};
  }
  throw std::logic_error("a field has no form");
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
