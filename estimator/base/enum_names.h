// Names of enumeration values, as documents and flags spell them. Each enumeration lists them once,
// in a function `enum_names(EnumType)` that returns an array of {value, name}.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace estimator {

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

/// The value of that name, if there is one.
template <class E>
std::optional<E> value_named(std::string_view name) {
  for (const auto& entry : enum_names(E{})) {
    if (name == entry.name) return entry.value;
  }
  return std::nullopt;
}

template <class E>
std::vector<std::string> names_of() {
  std::vector<std::string> names;
  for (const auto& entry : enum_names(E{})) names.emplace_back(entry.name);
  return names;
}

}  // namespace estimator
