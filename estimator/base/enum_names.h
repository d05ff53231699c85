// Names of enumeration values, as documents and flags spell them. Each enumeration lists them once,
// in a function `enum_names(EnumType)` that returns an array of {value, name}.
#pragma once

#include <stdexcept>
#include <string>
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

template <class E>
std::vector<std::string> names_of() {
  std::vector<std::string> names;
  for (const auto& entry : enum_names(E{})) names.emplace_back(entry.name);
  return names;
}

}  // namespace estimator
