// Code as nvcc embeds it in a library, made by hand.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace virtual_gpu {

struct Image {
  uint16_t kind;  // 1 PTX, 2 cubin
  uint32_t architecture;
  uint64_t flags = 0;
  std::string content = std::string(8, '\0');
  uint64_t unpacked_bytes = 0;
};

/// The wrapper that __cudaRegisterFatBinary is given. Each image is filled up to 8 bytes.
class Embedded {
 public:
  explicit Embedded(const std::vector<Image>& images) {
    std::string all;
    for (const Image& image : images) append(image, all);
    append(uint32_t{0xba55ed50}, bytes_);
    append(uint16_t{1}, bytes_);
    append(uint16_t{16}, bytes_);
    append(uint64_t{all.size()}, bytes_);
    bytes_ += all;
    wrapper_.container = bytes_.data();
  }
  Embedded(const Embedded&) = delete;

  const void* wrapper() const { return &wrapper_; }
  const std::string& bytes() const { return bytes_; }

 private:
  template <typename Number>
  static void append(Number number, std::string& bytes) {
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  }

  static void append(const Image& image, std::string& bytes) {
    const uint64_t packed = image.content.size();
    const uint64_t filled = (packed + 7) / 8 * 8;
    append(image.kind, bytes);
    append(uint16_t{0x101}, bytes);
    append(uint32_t{64}, bytes);
    append(filled, bytes);
    append(static_cast<uint32_t>(packed), bytes);
    append(uint64_t{0}, bytes);
    append(image.architecture, bytes);
    append(uint64_t{0}, bytes);
    append(image.flags, bytes);
    append(uint64_t{0}, bytes);
    append(image.unpacked_bytes, bytes);
    bytes += image.content + std::string(filled - packed, '\0');
  }

  std::string bytes_;
  struct {
    uint32_t magic = 0x466243b1;
    uint32_t version = 1;
    const char* container = nullptr;
    void* unused = nullptr;
  } wrapper_;
};

}  // namespace virtual_gpu
