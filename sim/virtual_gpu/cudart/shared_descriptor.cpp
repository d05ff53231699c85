#include "sim/virtual_gpu/cudart/shared_descriptor.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>

namespace virtual_gpu {
namespace {

constexpr std::array<char, 16> kMark = {"onerank memory"};

struct Contents {
  std::array<char, 16> mark = kMark;
  uint64_t is_multicast = 0;
  uint64_t bytes = 0;
};

}  // namespace

int make_descriptor(const SharedMemory& memory) {
  const Contents contents{.is_multicast = memory.is_multicast ? 1U : 0U, .bytes = memory.bytes};
  const int descriptor = memfd_create(kMark.data(), MFD_CLOEXEC);
  if (descriptor < 0) return -1;
  if (pwrite(descriptor, &contents, sizeof contents, 0) == sizeof contents) return descriptor;
  close(descriptor);
  return -1;
}

std::optional<SharedMemory> read_descriptor(int descriptor) {
  Contents contents;
  if (pread(descriptor, &contents, sizeof contents, 0) != sizeof contents) return std::nullopt;
  if (contents.mark != kMark) return std::nullopt;
  return SharedMemory{.is_multicast = contents.is_multicast != 0, .bytes = contents.bytes};
}

}  // namespace virtual_gpu
