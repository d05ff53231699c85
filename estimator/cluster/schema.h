// The JSON Schema (draft-07) of every document. It is made from the same list of fields as its
// reading and writing.
#pragma once

#include "estimator/base/document.h"

namespace estimator {

/// The schema of T's JSON: types, enumerations, ranges and descriptions. Only the keys of T are
/// allowed. Optionals may also be null or "auto", as in reading.
template <class T>
Json schema_of(RequiredKeys required, Range range = {});

/// The schema of a whole document, with "$schema" and "title".
Json titled_schema(const std::string& title, const Json& schema);

/// The same for a document that Onerank writes. Its head must equal that of `example`.
template <class Document>
Json document_schema(const std::string& title, const Document& example = {}) {
  Json schema = titled_schema(title, schema_of<Document>(RequiredKeys::kAllButOptional));
  schema["properties"]["schema_version"]["enum"] = Json::array({example.head.schema_version});
  schema["properties"]["kind"]["enum"] = Json::array({example.head.kind});
  return schema;
}

/// The schema of a plan, which may name its model or give all its fields.
Json plan_schema();
/// The schema of each line of a peak snapshot, which is the header or an allocation.
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
  if constexpr (std::same_as<T, Json> || std::same_as<T, JsonValue>) {
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
