// JSON inside a struct whose header does not need the JSON library.
#pragma once

#include <memory>

#include "estimator/base/json.h"

namespace estimator {

/// Holds one JSON value, null at first; a copy is a copy of the whole value.
class JsonValue {
 public:
  JsonValue();
  JsonValue(const Json& json);  // NOLINT: it stands for the value
  JsonValue(const JsonValue& other);
  JsonValue(JsonValue&& other) noexcept;
  JsonValue& operator=(JsonValue other) noexcept;
  ~JsonValue();

  const Json& json() const { return *json_; }

 private:
  std::unique_ptr<const Json> json_;
};

}  // namespace estimator
