// The JSON of documents, by its name alone: headers that pass it on need no more. What reads or
// makes it includes <nlohmann/json.hpp>, mostly by estimator/base/fields.h.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace estimator {

/// Keys keep the order in which they were written.
using Json = nlohmann::ordered_json;

}  // namespace estimator
