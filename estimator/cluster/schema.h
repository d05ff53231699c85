// JSON Schema (draft-07) of every document, from the same list of fields that reads and writes it.
#pragma once

#include "estimator/base/fields.h"

namespace estimator {

/// Which keys a document must have. People leave keys out of plans; what Onerank writes is complete
/// but for empty optionals.
enum class RequiredKeys { kNone, kAllButOptional };

/// The schema of T's JSON: types, enumerations, descriptions, no keys but T's. Optionals also take
/// null and "auto", as in reading.
template <class T>
Json schema_of(RequiredKeys required);

/// Whole documents, with "$schema" and "title". A plan may name its model or spell it out.
Json plan_schema();
Json rank_profile_schema();
Json cluster_estimate_schema();

namespace schema_detail {

template <class T>
Json object_schema(RequiredKeys required) {
  Json properties = Json::object();
  Json required_keys = Json::array();
  const auto add = [&](const char* key, auto& field, const char* description) {
    using Field = std::remove_reference_t<decltype(field)>;
    Json property = schema_of<Field>(required);
    property["description"] = description;
    properties[key] = std::move(property);
    if (!fields_detail::IsOptional<Field>::value) required_keys.push_back(key);
  };
  T object{};
  visit_fields(add, object);
  Json schema = {
      {"type", "object"}, {"additionalProperties", false}, {"properties", std::move(properties)}};
  if (required == RequiredKeys::kAllButOptional) schema["required"] = std::move(required_keys);
  return schema;
}

}  // namespace schema_detail

template <class T>
Json schema_of(RequiredKeys required) {
  using fields_detail::IsOptional;
  using fields_detail::IsVector;
  if constexpr (std::same_as<T, Json>) {
    return {{"type", "object"}};
  } else if constexpr (IsOptional<T>::value) {
    const Json nothing = {{"enum", Json::array({nullptr, "auto"})}};
    return {{"anyOf", Json::array({schema_of<typename T::value_type>(required), nothing})}};
  } else if constexpr (IsVector<T>::value) {
    return {{"type", "array"}, {"items", schema_of<typename T::value_type>(required)}};
  } else if constexpr (std::is_enum_v<T>) {
    return {{"type", "string"}, {"enum", names_of<T>()}};
  } else if constexpr (std::same_as<T, bool>) {
    return {{"type", "boolean"}};
  } else if constexpr (std::same_as<T, int64_t>) {
    return {{"type", "integer"}};
  } else if constexpr (std::same_as<T, double>) {
    return {{"type", "number"}};
  } else if constexpr (std::same_as<T, std::string>) {
    return {{"type", "string"}};
  } else {
    return schema_detail::object_schema<T>(required);
  }
}

}  // namespace estimator
