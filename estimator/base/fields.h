// Each struct lists its fields once. Reading, writing and the JSON Schema all come from that list.
// Reading is strict: unknown and missing keys, wrong types and numbers out of range are reported
// with the place where they stand.
//
//     template <class Visitor> void visit_fields(Visitor& visit, ClusterConfig& cluster) {
//       visit("gpu", cluster.gpu, "name of a GPU, see `onerank list gpus`");
//       visit("nodes", cluster.nodes, {"machines", Range{1, 1e6}});
//     }
//
// A field of type std::optional that is absent stays empty; `null` and "auto" read as empty.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "estimator/base/auto_value.h"
#include "estimator/base/enum_names.h"
#include "estimator/base/errors.h"
#include "estimator/base/json.h"
#include "estimator/base/json_value.h"
#include "estimator/base/option.h"

namespace estimator {

namespace fields_detail {

struct AnyVisitor {
  template <class T>
  void operator()(const char*, T&, const Option&) {}
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
struct IsOptional<Auto<T>> : std::true_type {};

template <class T>
bool is_empty(const std::optional<T>& value) {
  return !value;
}
template <class T>
bool is_empty(const Auto<T>& value) {
  return !value.is_known();
}

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};

}  // namespace fields_detail

/// Which keys a document must have. People leave keys out of plans. A document that Onerank wrote
/// has all keys, except those of empty optionals.
enum class RequiredKeys { kNoKeys, kAllButOptional };

/// Reads JSON into structs and collects the problems that it finds. It keeps the first ones and
/// counts the others, so that even a large damaged document gives a short message.
class FieldReader {
 public:
  /// `origin` names the document in messages: a file name, or "command line".
  explicit FieldReader(std::string origin, RequiredKeys required = RequiredKeys::kNoKeys)
      : origin_(std::move(origin)), required_(required) {}

  template <class T>
  void read(const Json& json, T& value, const std::string& path, Range range = {});

  void report(const std::string& path,
              std::string what,
              const std::string& found,
              std::string help);
  void throw_if_any() const;

 private:
  template <class T>
  void read_object(const Json& json, T& object, const std::string& path);

  void check_range(const Json& json, const std::string& path, Range range);

  std::string origin_;
  RequiredKeys required_;
  std::vector<Problem> problems_;
  int64_t left_out_ = 0;  ///< number of problems that are not in problems_
};

/// The keys of T, in order.
template <class T>
std::vector<std::string> keys_of() {
  std::vector<std::string> keys;
  auto visitor = [&](const char* key, auto&, const Option&) { keys.emplace_back(key); };
  T object{};
  visit_fields(visitor, object);
  return keys;
}

/// The JSON as text, shortened so that a message can show it.
std::string shown(const Json& json);

template <class T>
void FieldReader::read_object(const Json& json, T& object, const std::string& path) {
  if (!json.is_object()) {
    report(path, "an object is needed here", shown(json), "write { \"key\": value, ... }");
    return;
  }
  std::map<std::string_view, const Json*> items;  // finding a key in an ordered_json is a search
  for (const auto& item : json.items()) items.emplace(item.key(), &item.value());
  const std::string prefix = path.empty() ? "" : path + ".";
  auto visitor = [&](const char* key, auto& field, const Option& option) {
    using Field = std::remove_reference_t<decltype(field)>;
    if (const auto found = items.find(key); found != items.end()) {
      read(*found->second, field, prefix + key, option.range);
      items.erase(found);
    } else if (required_ == RequiredKeys::kAllButOptional &&
               !fields_detail::IsOptional<Field>::value) {
      report(prefix + key, "a key is missing", "", std::string("it is needed: ") + option.help);
    }
  };
  visit_fields(visitor, object);
  if (items.empty()) return;
  const std::vector<std::string> known = keys_of<T>();
  for (const auto& [key, value] : items) {
    report(prefix + std::string(key), "unknown key", "", suggestion(key, known));
  }
}

template <class T>
void FieldReader::read(const Json& json, T& value, const std::string& path, Range range) {
  using fields_detail::IsOptional;
  using fields_detail::IsVector;
  if constexpr (std::same_as<T, Json> || std::same_as<T, JsonValue>) {
    value = json;
  } else if constexpr (IsOptional<T>::value) {
    if (json.is_null() || json == "auto") {
      value.reset();
    } else {
      typename T::value_type inner{};
      read(json, inner, path, range);
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
      read(json[i], inner, path + "[" + std::to_string(i) + "]", range);
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
    if (json.is_number() && is_whole(json.template get<double>())) {
      value = static_cast<int64_t>(json.template get<double>());  // 15e12 tokens, as people write
    } else {
      report(path, "a whole number is needed here", shown(json), "write a number such as 8");
      return;
    }
    check_range(json, path, range);
  } else if constexpr (std::same_as<T, double>) {
    if (json.is_number() && std::isfinite(json.template get<double>())) {
      value = json.template get<double>();
    } else {
      report(path, "a finite number is needed here", shown(json), "write a number such as 0.1");
      return;
    }
    check_range(json, path, range);
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

/// Writes a struct as JSON; empty optionals are left out. Throws std::logic_error for a number that
/// is not finite, because JSON cannot hold it; `key` names the number in the message.
template <class T>
Json to_json(const T& value, const char* key = "") {
  using fields_detail::IsOptional;
  using fields_detail::IsVector;
  if constexpr (IsOptional<T>::value) {
    return fields_detail::is_empty(value) ? Json(nullptr) : to_json(value.value(), key);
  } else if constexpr (IsVector<T>::value) {
    Json array = Json::array();
    for (const auto& item : value) array.push_back(to_json(item, key));
    return array;
  } else if constexpr (std::is_enum_v<T>) {
    return to_string(value);
  } else if constexpr (fields_detail::HasFields<T>) {
    Json object = Json::object();
    auto visitor = [&](const char* name, auto& field, const Option&) {
      Json json = to_json(field, name);
      if (!json.is_null()) object[name] = std::move(json);
    };
    visit_fields(visitor, const_cast<T&>(value));  // the visitor above only reads
    return object;
  } else if constexpr (std::same_as<T, JsonValue>) {
    return value.json();
  } else if constexpr (std::same_as<T, double>) {
    if (!std::isfinite(value)) {
      throw std::logic_error(std::string("a document's number is not finite: ") + key);
    }
    return value;
  } else {
    return value;
  }
}

}  // namespace estimator
