#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace virtual_gpu {

/// The struct at `offset` in bytes that may be damaged or cut off. Empty if the bytes end before
/// its end.
template <typename Struct>
std::optional<Struct> read_at(std::string_view bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(Struct)) return std::nullopt;
  Struct value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

/// `count` bytes from `offset` on; empty if there are not so many.
inline std::optional<std::string_view> part_of(std::string_view bytes,
                                               uint64_t offset,
                                               uint64_t count) {
  if (offset > bytes.size() || bytes.size() - offset < count) return std::nullopt;
  return bytes.substr(offset, count);
}

}  // namespace virtual_gpu
