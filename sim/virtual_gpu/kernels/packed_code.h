#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace virtual_gpu {

/// How nvcc has compressed an image.
enum class Packing { kNone, kLz4, kZstd, kUnknown };

/// The image that these bytes hold. It is unpacked by the machine's liblz4.so.1 or libzstd.so.1:
/// empty if that is not installed, if the bytes are damaged, or if no packing is known.
std::optional<std::string> unpacked(Packing packing,
                                    std::string_view bytes,
                                    uint64_t unpacked_bytes);

}  // namespace virtual_gpu
