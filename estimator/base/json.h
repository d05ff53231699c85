// Forward declaration of the JSON type of documents, for headers that only pass it on. Code that
// reads or makes JSON includes <nlohmann/json.hpp>, mostly through estimator/base/fields.h.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace estimator {

/// Keys keep the order in which they were written.
using Json = nlohmann::ordered_json;

}  // namespace estimator
