// A value that a plan may leave to Onerank.
#pragma once

#include <concepts>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace estimator {

/// "auto" until it is said, or follows from the rest of the plan (resolve_plan()). From then on it
/// reads as a T; to read one that is still open is a fault of ours: std::logic_error.
template <class T>
class Auto {
 public:
  using value_type = T;

  Auto() = default;
  Auto(T value) : value_(std::move(value)) {}  // NOLINT: it stands for the value

  bool is_known() const { return value_.has_value(); }
  const T& value() const {
    if (!value_) throw std::logic_error("a value of the plan is still open");
    return *value_;
  }
  T value_or(T other) const { return value_.value_or(std::move(other)); }
  operator const T&() const { return value(); }  // NOLINT
  /// Whether it is open is asked by is_known(); `if (nodes)` would ask whether it is 0.
  explicit operator bool() const requires(!std::same_as<T, bool>) = delete;

  void fill_in(T value) {
    if (!value_) value_ = std::move(value);
  }
  void reset() { value_.reset(); }
  /// Makes it known, as a new T, which the caller fills in.
  T& emplace() { return value_.emplace(); }

 private:
  std::optional<T> value_;
};

/// The name of an enumeration value that is known.
template <class E>
std::string to_string(const Auto<E>& value) requires std::is_enum_v<E> {
  return to_string(value.value());
}

}  // namespace estimator
