// Reads and writes tensors on the virtual GPU whose values are known.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/exec/program/virtual_gpu_control.h"

namespace sim {

/// The part of what is followed at once that the tensor's values are; those above 1 are not
/// followed. Bytes are no integers: images and packed weights are made of them.
double followed_part(const at::Tensor& tensor, const VirtualGpu& gpu);

/// Whether the tensor's memory is small enough to be followed, and its values are known.
bool is_known(const at::Tensor& device, const VirtualGpu& gpu);

/// The elements of a contiguous tensor of integers with one dimension, on the device or on the CPU;
/// empty where it is another tensor, or they are not known. Calls no operator.
std::optional<std::vector<int64_t>> known_integers(const at::Tensor& tensor, const VirtualGpu& gpu);

/// A copy on the CPU of what a tensor on the device holds.
struct HostCopy {
  at::Tensor tensor;            ///< with its sizes and strides
  bool is_of_the_host = false;  ///< some of it came from the host
  /// The memory between the elements is known too, and is copied between those of `tensor`.
  bool has_gaps = false;
};
/// A copy with the device's values; empty if they are not known.
std::optional<HostCopy> read_known(const at::Tensor& device, const VirtualGpu& gpu);
/// A copy without the values.
HostCopy like_on_host(const at::Tensor& device);

/// From now on the tensor `device` is known to hold the values of `copy`, if both have the same
/// sizes and type and the tensor is small enough.
void make_known(const at::Tensor& device, const HostCopy& copy, const VirtualGpu& gpu);

}  // namespace sim
