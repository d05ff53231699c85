// Tensors on the virtual GPU whose values are known: read to the host, and written from there.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "sim/exec/virtual_gpu_control.h"

namespace sim {

/// Whether the tensor's memory is small enough to be followed, and its values are known.
bool is_known(const at::Tensor& device, const VirtualGpu& gpu);

/// A copy on the CPU of what a tensor on the device holds.
struct HostCopy {
  at::Tensor tensor;            ///< with its sizes and strides
  bool is_of_the_host = false;  ///< some of it came from the host
  /// What lies between its elements is known too, and is between those of `tensor`.
  bool has_gaps = false;
};
/// With the device's values; empty where they are not known.
std::optional<HostCopy> read_known(const at::Tensor& device, const VirtualGpu& gpu);
/// With none.
HostCopy like_on_host(const at::Tensor& device);

/// The device's tensor holds from now on what `copy` does, if it has its sizes and type and is
/// small enough.
void make_known(const at::Tensor& device, const HostCopy& copy, const VirtualGpu& gpu);

}  // namespace sim
