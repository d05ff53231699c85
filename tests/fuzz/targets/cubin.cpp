// Code that programs load at run time: the virtual GPU looks for what its kernels take.
#include "sim/virtual_gpu/kernels/cubin.h"

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A copy that ends where the input does, so that a read behind it is seen.
  const std::vector<char> image(data, data + size);
  return fuzz::read_and_use([&] {
    if (virtual_gpu::kernels_in({image.data(), image.size()}).empty()) throw fuzz::Refused();
  });
}
