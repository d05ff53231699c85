// JSON inside a struct whose header does not need the JSON library.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "estimator/base/json.h"

namespace estimator {

/// Holds one JSON value, null at first, which nothing changes. Copies share it.
class JsonValue {
 public:
  JsonValue();
  // NOLINTBEGIN(google-explicit-constructor): each stands for the value.
  JsonValue(Json json);
  JsonValue(bool value);
  JsonValue(int value);
  JsonValue(int64_t value);
  JsonValue(const char* value);
  JsonValue(const std::string& value);
  JsonValue(const std::vector<int64_t>& value);
  // NOLINTEND(google-explicit-constructor)

  const Json& json() const { return *json_; }

  bool operator==(const JsonValue& other) const;

 private:
  std::shared_ptr<const Json> json_;
};

}  // namespace estimator
