#include "sim/virtual_gpu/kernels/packed_code.h"

#include <dlfcn.h>

#include <cstddef>
#include <limits>

namespace virtual_gpu {
namespace {

constexpr uint64_t kLargestImage = uint64_t{1} << 30;

/// A function of a library that stays loaded; null if the machine does not have it.
template <typename Function>
Function* find_in(const char* library, const char* name) {
  void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  return handle == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(handle, name));
}

bool unpack_lz4(std::string_view bytes, std::string& image) {
  static auto* const decompress =
      find_in<int(const char*, char*, int, int)>("liblz4.so.1", "LZ4_decompress_safe");
  return decompress != nullptr && bytes.size() < kLargestImage &&
         decompress(bytes.data(),
                    image.data(),
                    static_cast<int>(bytes.size()),
                    static_cast<int>(image.size())) == static_cast<int>(image.size());
}

bool unpack_zstd(std::string_view bytes, std::string& image) {
  static auto* const decompress =
      find_in<size_t(void*, size_t, const void*, size_t)>("libzstd.so.1", "ZSTD_decompress");
  return decompress != nullptr &&
         decompress(image.data(), image.size(), bytes.data(), bytes.size()) == image.size();
}

bool unpack(Packing packing, std::string_view bytes, std::string& image) {
  switch (packing) {
    case Packing::kLz4:
      return unpack_lz4(bytes, image);
    case Packing::kZstd:
      return unpack_zstd(bytes, image);
    case Packing::kNone:
    case Packing::kUnknown:
      return false;
  }
  return false;
}

}  // namespace

std::optional<std::string> unpacked(Packing packing,
                                    std::string_view bytes,
                                    uint64_t unpacked_bytes) {
  if (unpacked_bytes > kLargestImage) return std::nullopt;  // it is damaged
  std::string image(unpacked_bytes, '\0');
  if (!unpack(packing, bytes, image)) return std::nullopt;
  return image;
}

}  // namespace virtual_gpu
