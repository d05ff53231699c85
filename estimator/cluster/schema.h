// JSON Schema (draft-07) of every document, from the same list of fields that reads and writes it.
#pragma once

#include "estimator/base/document.h"

namespace estimator {

/// The schema of T's JSON: types, enumerations, ranges, descriptions, no keys but T's. Optionals
/// also take null and "auto", as in reading.
template <class T>
Json schema_of(RequiredKeys required, Range range = {});

/// A whole document, with "$schema" and "title".
Json titled_schema(const std::string& title, const Json& schema);

/// The same of a document that Onerank writes: its head is that of `example`.
template <class Document>
Json document_schema(const std::string& title, const Document& example = {}) {
  Json schema = titled_schema(title, schema_of<Document>(RequiredKeys::kAllButOptional));
  schema["properties"]["schema_version"]["enum"] = Json::array({example.head.schema_version});
  schema["properties"]["kind"]["enum"] = Json::array({example.head.kind});
  return schema;
}

/// A plan may name its model or spell it out.
Json plan_schema();
/// Of each line of a peak snapshot: a header, or an allocation.
Json peak_snapshot_schema();

namespace schema_detail {

template <class T>
Json object_schema(RequiredKeys required) {
  Json properties = Json::object();
  Json required_keys = Json::array();
  const auto add = [&](const char* key, auto& field, const Option& option) {
    using Field = std::remove_reference_t<decltype(field)>;
    Json property = schema_of<Field>(required, option.range);
    property["description"] = option.help;
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

Json with_range(Json schema, Range range);

}  // namespace schema_detail

template <class T>
Json schema_of(RequiredKeys required, Range range) {
  using fields_detail::IsOptional;
  using fields_detail::IsVector;
  if constexpr (std::same_as<T, Json>) {
    return {{"type", "object"}};
  } else if constexpr (IsOptional<T>::value) {
    const Json nothing = {{"enum", Json::array({nullptr, "auto"})}};
    return {{"anyOf", Json::array({schema_of<typename T::value_type>(required, range), nothing})}};
  } else if constexpr (IsVector<T>::value) {
    return {{"type", "array"}, {"items", schema_of<typename T::value_type>(required, range)}};
  } else if constexpr (std::is_enum_v<T>) {
    return {{"type", "string"}, {"enum", names_of<T>()}};
  } else if constexpr (std::same_as<T, bool>) {
    return {{"type", "boolean"}};
  } else if constexpr (std::same_as<T, int64_t>) {
    return schema_detail::with_range({{"type", "integer"}}, range);
  } else if constexpr (std::same_as<T, double>) {
    return schema_detail::with_range({{"type", "number"}}, range);
  } else if constexpr (std::same_as<T, std::string>) {
    return {{"type", "string"}};
  } else {
    return schema_detail::object_schema<T>(required);
  }
}

}  // namespace estimator
