// Sizes as people write them: "10GiB", "1.5 GB", "64K".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "estimator/base/json.h"

namespace sim {

/// The units that a size may have, as help texts say them.
inline constexpr const char* kSizeUnits = "K, M, G or T (or KiB ... TiB: 1024) or KB ... TB (1000)";

/// The size in bytes. Empty unless it is a whole number of bytes, from 0 on, that a document may
/// hold.
std::optional<int64_t> parse_bytes(const std::string& text);

/// Whether a key, or a path of keys, has a size as its value: its name ends in "_bytes".
bool is_size(std::string_view key);

/// Replaces text by the number of bytes, at every key of `tree` that is_size(); "10%" is that share
/// of the memory of the GPU that the tree names. For text that is no size it throws UserError,
/// which names the keys with `origin` before each.
void read_byte_sizes(estimator::Json& tree, const std::string& origin);

}  // namespace sim
