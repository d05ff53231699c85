// Code as nvcc embeds it into libraries: the virtual GPU looks for the architectures in it.
#include "sim/virtual_gpu/kernels/fat_binary.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<char> container(data, data + size);
  return fuzz::read_and_use([&] {
    if (virtual_gpu::images_in({container.data(), container.size()}).empty()) throw fuzz::Refused();
  });
}
