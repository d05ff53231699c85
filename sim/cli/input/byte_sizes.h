// Sizes as people write them: "10GiB", "1.5 GB", "64K".
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "estimator/base/json.h"

namespace sim {

/// The units that a size may have, as a help says them.
inline constexpr const char* kSizeUnits = "K, M, G or T (or KiB ... TiB: 1024) or KB ... TB (1000)";

/// The bytes that the text says, if it is a whole number of them from 0 on that documents hold.
std::optional<int64_t> parse_bytes(const std::string& text);

/// Writes the bytes in the place of text, at every key of `tree` that ends in "_bytes". Throws
/// UserError that names the keys, with `origin` before each, for text that is no size.
void read_byte_sizes(estimator::Json& tree, const std::string& origin);

}  // namespace sim
