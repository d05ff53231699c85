// A struct's fields, listed once. From the list come reading (strict: unknown keys, wrong types and
// numbers out of range are problems with a place), writing, and the JSON Schema.
//
//     template <class Visitor> void visit_fields(Visitor& visit, ClusterConfig& cluster) {
//       visit("gpu", cluster.gpu, "name of a GPU, see `onerank list gpus`");
//     }
//
// An enumeration is listed by `constexpr auto enum_names(EnumType)`, an array of {value, name}.
// A field of type std::optional that is absent stays empty; `null` and "auto" read as empty.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "estimator/base/errors.h"

namespace estimator {

using Json = nlohmann::ordered_json;

template <class E>
struct EnumName {
  E value;
  const char* name;
};

template <class E>
std::string to_string(E value) requires std::is_enum_v<E> {
  for (const auto& entry : enum_names(E{})) {
    if (entry.value == value) return entry.name;
  }
  throw std::logic_error("an enumeration value has no name");
}

template <class E>
std::vector<std::string> names_of() {
  std::vector<std::string> names;
  for (const auto& entry : enum_names(E{})) names.emplace_back(entry.name);
  return names;
}

namespace fields_detail {

struct AnyVisitor {
  template <class T>
  void operator()(const char*, T&, const char*) {}
};

template <class T>
concept HasFields = requires(AnyVisitor& visitor, T& object) {
  visit_fields(visitor, object);
};

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};

}  // namespace fields_detail

/// Reads JSON into structs and collects every problem on the way.
class FieldReader {
 public:
  /// `origin` names the document in messages: a file name, or "command line".
  explicit FieldReader(std::string origin) : origin_(std::move(origin)) {}

  template <class T>
  void read(const Json& json, T& value, const std::string& path);

  void report(const std::string& path, std::string what, std::string found, std::string help) {
    std::string where = origin_ + (path.empty() ? "" : ": " + path);
    if (!found.empty()) where += " = " + found;
    problems_.push_back({std::move(what), std::move(where), std::move(help)});
  }

  const std::vector<Problem>& problems() const { return problems_; }
  void throw_if_any() const {
    if (!problems_.empty()) throw UserError(problems_);
  }

 private:
  template <class T>
  void read_object(const Json& json, T& object, const std::string& path);

  std::string origin_;
  std::vector<Problem> problems_;
};

/// The keys of T, in order.
template <class T>
std::vector<std::string> keys_of() {
  std::vector<std::string> keys;
  auto visitor = [&](const char* key, auto&, const char*) { keys.emplace_back(key); };
  T object{};
  visit_fields(visitor, object);
  return keys;
}

/// JSON shortened to what a message can show.
std::string shown(const Json& json);

template <class T>
void FieldReader::read_object(const Json& json, T& object, const std::string& path) {
  if (!json.is_object()) {
    report(path, "an object is needed here", shown(json), "write { \"key\": value, ... }");
    return;
  }
  const std::string prefix = path.empty() ? "" : path + ".";
  for (const auto& item : json.items()) {
    bool known = false;
    auto visitor = [&](const char* key, auto& field, const char*) {
      if (item.key() != key) return;
      known = true;
      read(item.value(), field, prefix + key);
    };
    visit_fields(visitor, object);
    if (!known) {
      report(prefix + item.key(), "unknown key", "", suggestion(item.key(), keys_of<T>()));
    }
  }
}

template <class T>
void FieldReader::read(const Json& json, T& value, const std::string& path) {
  using fields_detail::IsOptional;
  using fields_detail::IsVector;
  if constexpr (std::same_as<T, Json>) {
    value = json;
  } else if constexpr (IsOptional<T>::value) {
    if (json.is_null() || json == "auto") {
      value.reset();
    } else {
      typename T::value_type inner{};
      read(json, inner, path);
      value = std::move(inner);
    }
  } else if constexpr (IsVector<T>::value) {
    if (!json.is_array()) {
      report(path, "a list is needed here", shown(json), "write [ ... ]");
      return;
    }
    value.clear();
    for (std::size_t i = 0; i < json.size(); ++i) {
      typename T::value_type inner{};
      read(json[i], inner, path + "[" + std::to_string(i) + "]");
      value.push_back(std::move(inner));
    }
  } else if constexpr (std::is_enum_v<T>) {
    for (const auto& entry : enum_names(T{})) {
      if (json == entry.name) {
        value = entry.value;
        return;
      }
    }
    const std::string text = json.is_string() ? json.template get<std::string>() : shown(json);
    report(path, "unknown value", shown(json), suggestion(text, names_of<T>()));
  } else if constexpr (std::same_as<T, bool>) {
    if (json.is_boolean()) {
      value = json.template get<bool>();
    } else {
      report(path, "true or false is needed here", shown(json), "write true or false");
    }
  } else if constexpr (std::same_as<T, int64_t>) {
    constexpr double kLargest = 9.0e15;
    if (json.is_number_integer() && std::abs(json.template get<double>()) <= kLargest) {
      value = json.template get<int64_t>();
    } else if (json.is_number_float() && std::abs(json.template get<double>()) <= kLargest &&
               std::floor(json.template get<double>()) == json.template get<double>()) {
      value = static_cast<int64_t>(json.template get<double>());  // 15e12 tokens, as people write
    } else {
      report(path, "a whole number is needed here", shown(json), "write a number such as 8");
    }
  } else if constexpr (std::same_as<T, double>) {
    if (json.is_number() && std::isfinite(json.template get<double>())) {
      value = json.template get<double>();
    } else {
      report(path, "a finite number is needed here", shown(json), "write a number such as 0.1");
    }
  } else if constexpr (std::same_as<T, std::string>) {
    if (json.is_string()) {
      value = json.template get<std::string>();
    } else {
      report(path, "text is needed here", shown(json), "write it in quotes");
    }
  } else {
    static_assert(fields_detail::HasFields<T>, "T needs visit_fields()");
    read_object(json, value, path);
  }
}

/// Writes a struct as JSON; empty optionals are left out.
template <class T>
Json to_json(const T& value) {
  using fields_detail::IsOptional;
  using fields_detail::IsVector;
  if constexpr (IsOptional<T>::value) {
    return value ? to_json(*value) : Json(nullptr);
  } else if constexpr (IsVector<T>::value) {
    Json array = Json::array();
    for (const auto& item : value) array.push_back(to_json(item));
    return array;
  } else if constexpr (std::is_enum_v<T>) {
    return to_string(value);
  } else if constexpr (fields_detail::HasFields<T>) {
    Json object = Json::object();
    auto visitor = [&](const char* key, auto& field, const char*) {
      Json json = to_json(field);
      if (!json.is_null()) object[key] = std::move(json);
    };
    visit_fields(visitor, const_cast<T&>(value));  // the visitor above only reads
    return object;
  } else {
    return value;
  }
}

}  // namespace estimator
