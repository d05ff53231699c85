// What reading, writing and the JSON Schema need to know of the type of a field. The compiler makes
// it once for each type; the code that reads, writes and describes is ordinary code over it.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "estimator/base/auto_value.h"
#include "estimator/base/enum_names.h"
#include "estimator/base/json.h"
#include "estimator/base/json_value.h"
#include "estimator/base/option.h"

namespace estimator {

class FieldVisitor;

enum class FieldForm {
  kSwitch,    ///< bool
  kWhole,     ///< int64_t
  kReal,      ///< double
  kText,      ///< std::string
  kChoice,    ///< an enumeration with enum_names()
  kOptional,  ///< std::optional or Auto
  kList,      ///< std::vector
  kObject,    ///< a struct with visit_fields()
  kJson       ///< Json or JsonValue
};

/// Functions take the address of a value of the type; those that another form has are null.
struct FieldType {
  FieldForm form;
  /// Of an optional's value, or of a list's entries.
  const FieldType* inner = nullptr;

  // kChoice
  std::vector<std::string> (*names)() = nullptr;
  std::string (*name)(const void* value) = nullptr;
  /// Sets the value of that name; returns false if there is none.
  bool (*choose)(void* value, std::string_view name) = nullptr;

  // kOptional, kList
  /// Leaves an optional or a list empty.
  void (*clear)(void* value) = nullptr;
  /// Gives an optional its value or a list one more entry, as it is initially, and returns its
  /// address.
  void* (*append)(void* value) = nullptr;
  /// 0 or 1 for an optional.
  std::size_t (*size)(const void* value) = nullptr;
  const void* (*at)(const void* value, std::size_t index) = nullptr;

  // kObject
  void (*visit)(void* value, FieldVisitor& visitor) = nullptr;
  /// Visits the fields of a new object.
  void (*visit_new)(FieldVisitor& visitor) = nullptr;

  // kJson
  const Json& (*json)(const void* value) = nullptr;
  void (*set_json)(void* value, const Json& json) = nullptr;
};

namespace fields_detail {

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsOptional<Auto<T>> : std::true_type {};

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};

template <class T>
constexpr FieldType field_type();

}  // namespace fields_detail

template <class T>
inline constexpr FieldType kFieldType = fields_detail::field_type<T>();

/// Is shown each field of a struct by its visit_fields().
class FieldVisitor {
 public:
  template <class T>
  void operator()(const char* key, T& value, const Option& option) {
    visit(key, &value, kFieldType<T>, option);
  }

 protected:
  ~FieldVisitor() = default;
  /// `value` is the address of a value of `type`.
  virtual void visit(const char* key, void* value, const FieldType& type, const Option& option) = 0;
};

namespace fields_detail {

template <class T>
T& as(void* value) {
  return *static_cast<T*>(value);
}
template <class T>
const T& as(const void* value) {
  return *static_cast<const T*>(value);
}

template <class T>
bool holds_value(const std::optional<T>& value) {
  return value.has_value();
}
template <class T>
bool holds_value(const Auto<T>& value) {
  return value.is_known();
}

template <class T>
constexpr FieldType choice_type() {
  return {.form = FieldForm::kChoice,
          .names = names_of<T>,
          .name = [](const void* value) { return to_string(as<T>(value)); },
          .choose =
              [](void* value, std::string_view name) {
                const std::optional<T> chosen = value_named<T>(name);
                if (chosen) as<T>(value) = *chosen;
                return chosen.has_value();
              }};
}

template <class T>
constexpr FieldType optional_type() {
  return {
      .form = FieldForm::kOptional,
      .inner = &kFieldType<typename T::value_type>,
      .clear = [](void* value) { as<T>(value).reset(); },
      .append = [](void* value) -> void* { return &as<T>(value).emplace(); },
      .size = [](const void* value) -> std::size_t { return holds_value(as<T>(value)) ? 1 : 0; },
      .at = [](const void* value, std::size_t) -> const void* { return &as<T>(value).value(); }};
}

template <class T>
constexpr FieldType list_type() {
  return {.form = FieldForm::kList,
          .inner = &kFieldType<typename T::value_type>,
          .clear = [](void* value) { as<T>(value).clear(); },
          .append = [](void* value) -> void* { return &as<T>(value).emplace_back(); },
          .size = [](const void* value) { return as<T>(value).size(); },
          .at = [](const void* value, std::size_t i) -> const void* { return &as<T>(value)[i]; }};
}

template <class T>
concept HasFields = requires(FieldVisitor& visitor, T& object) {
  visit_fields(visitor, object);
};

template <class T>
constexpr FieldType object_type() {
  static_assert(HasFields<T>, "T needs visit_fields()");
  return {.form = FieldForm::kObject,
          .visit = [](void* value, FieldVisitor& visitor) { visit_fields(visitor, as<T>(value)); },
          .visit_new =
              [](FieldVisitor& visitor) {
                T object{};
                visit_fields(visitor, object);
              }};
}

template <class T>
constexpr FieldType json_type() {
  return {.form = FieldForm::kJson,
          .json = [](const void* value) -> const Json& {
            if constexpr (std::same_as<T, JsonValue>) {
              return as<T>(value).json();
            } else {
              return as<T>(value);
            }
          },
          .set_json = [](void* value, const Json& json) { as<T>(value) = json; }};
}

template <class T>
constexpr FieldType field_type() {
  if constexpr (std::same_as<T, bool>) {
    return {.form = FieldForm::kSwitch};
  } else if constexpr (std::same_as<T, int64_t>) {
    return {.form = FieldForm::kWhole};
  } else if constexpr (std::same_as<T, double>) {
    return {.form = FieldForm::kReal};
  } else if constexpr (std::same_as<T, std::string>) {
    return {.form = FieldForm::kText};
  } else if constexpr (std::same_as<T, Json> || std::same_as<T, JsonValue>) {
    return json_type<T>();
  } else if constexpr (std::is_enum_v<T>) {
    return choice_type<T>();
  } else if constexpr (IsOptional<T>::value) {
    return optional_type<T>();
  } else if constexpr (IsVector<T>::value) {
    return list_type<T>();
  } else {
    return object_type<T>();
  }
}

}  // namespace fields_detail

}  // namespace estimator
