// Whether a document is as its JSON Schema says.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "estimator/base/fields.h"

namespace estimator {

inline bool has_type(const Json& json, const std::string& type) {
  if (type == "object") return json.is_object();
  if (type == "array") return json.is_array();
  if (type == "string") return json.is_string();
  if (type == "boolean") return json.is_boolean();
  if (type == "integer") return json.is_number_integer();
  return type == "number" && json.is_number();
}

/// The part of draft-07 that the schemas use. Returns the path of the first violation, or "".
inline std::string violation(const Json& schema, const Json& json, const std::string& path = "$") {
  if (schema.contains("anyOf")) {
    for (const Json& each : schema["anyOf"]) {
      if (violation(each, json, path).empty()) return "";
    }
    return path;
  }
  if (schema.contains("type") && !has_type(json, schema["type"])) return path;
  if (json.is_number() && (json.get<double>() < schema.value("minimum", -HUGE_VAL) ||
                           json.get<double>() > schema.value("maximum", HUGE_VAL))) {
    return path;
  }
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

}  // namespace estimator
