// Sizes as people write them: "10GiB", "1.5 GB", "64K".
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "estimator/base/json.h"

namespace sim {

/// The units that a size may have, as help texts say them.
inline constexpr const char* kSizeUnits = "K, M, G or T (or KiB ... TiB: 1024) or KB ... TB (1000)";

/// The size in bytes. Empty unless it is a whole number of bytes, from 0 on, that a document may
/// hold.
std::optional<int64_t> parse_bytes(const std::string& text);

/// Replaces text by the number of bytes, at every key of `tree` that ends in "_bytes". For text
/// that is no size it throws UserError, which names the keys with `origin` before each.
void read_byte_sizes(estimator::Json& tree, const std::string& origin);

}  // namespace sim
