#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/virtual_gpu/capability.h"
#include "sim/virtual_gpu/kernels/cubin.h"
#include "sim/virtual_gpu/kernels/packed_code.h"

namespace virtual_gpu {

/// The architectures of a kernel's code, as cudaFuncGetAttributes reports them, e.g. 90 and 90.
/// Libraries choose their launch parameters by these numbers.
struct CodeVersion {
  int binary;
  int ptx;
};

/// The code for one architecture.
struct CodeImage {
  bool is_ptx;
  int architecture;           // 90 for 9.0
  bool is_for_that_one_only;  // the "a" of sm_90a
  Packing packing;
  uint64_t unpacked_bytes;
  std::string_view content;  // as it is packed
};

/// The images in a container that nvcc wrote; if it is damaged, those that can be read.
std::vector<CodeImage> images_in(std::string_view container);

/// The code of kernels that nvcc embeds in a library. Torch's wheels have code for a few
/// architectures (7.5, 8.0, 8.6, 9.0, ...); a device runs the best one that fits.
class FatBinary {
 public:
  /// `wrapper` is the argument of __cudaRegisterFatBinary. It is read when it is first needed.
  explicit FatBinary(const void* wrapper) : wrapper_(wrapper) {}

  /// The code that a device of this capability would run; empty if there is none for it.
  std::optional<CodeVersion> version_for(const CapabilityFacts& facts) const;

  /// What that code says of the kernel; null if it lacks the kernel or cannot be unpacked. The
  /// first call reads the code, which takes milliseconds.
  const KernelCode* code_of(std::string_view kernel, const CapabilityFacts& facts) const;

  /// What the kernel needs in that code; empty if the code is PTX, is compressed or lacks the
  /// kernel. (Libtorch asks for hundreds of its own kernels, all of them compressed: to unpack them
  /// would take longer than the run.)
  std::optional<KernelNeeds> needs_of(std::string_view kernel, const CapabilityFacts& facts) const;

 private:
  void read_images() const;
  void read_kernels(const CodeImage& image) const;
  const CodeImage* best_for(const CapabilityFacts& facts) const;

  const void* wrapper_;
  mutable std::once_flag once_;
  mutable std::vector<CodeImage> images_;
  mutable std::once_flag kernels_once_;
  mutable KernelCodes kernels_;
};

}  // namespace virtual_gpu
