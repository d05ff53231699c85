#include "sim/exec/values/known_tensors.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <cstring>

#include "sim/exec/values/written_memory.h"

namespace sim {
namespace {

/// A tensor in more pieces is not put together from what is known of them.
constexpr int64_t kMostRuns = 4096;

bool decides_counts(c10::ScalarType type) {
  return type == at::kBool || type == at::kInt || type == at::kLong;
}

uint64_t largest_bytes(const at::Tensor& tensor, const VirtualGpu& gpu) {
  return decides_counts(tensor.scalar_type()) ? gpu.largest_integer_bytes : gpu.largest_bytes;
}

/// Whether the tensor's elements are few, and the memory that they lie in is too if it is copied.
bool is_small(const at::Tensor& device, const MemoryRange& range, const VirtualGpu& gpu) {
  constexpr uint64_t kMostGaps = 64;
  const uint64_t largest = largest_bytes(device, gpu);
  return range.address != nullptr && device.nbytes() <= largest &&
         range.bytes <= std::max(kMostGaps * gpu.largest_bytes, largest);
}

char* at_offset(const MemoryRange& range, int64_t offset) {
  return static_cast<char*>(range.address) + offset;
}

/// Element by element, where what lies between is not known. 0, or what peek() gives.
int peek_runs(const at::Tensor& device, const VirtualGpu& gpu, char* value) {
  const MemoryRange range = memory_of(device);
  int known = 1;
  const bool is_visited = for_each_run(device, kMostRuns, [&](int64_t offset, uint64_t bytes) {
    if (known == 0) return;
    char* const part = value == nullptr ? nullptr : value + offset;
    const int of_run = gpu.peek(at_offset(range, offset), bytes, part);
    known = of_run == 0 ? 0 : std::max(known, of_run);
  });
  return is_visited ? known : 0;
}

int peek_tensor(const at::Tensor& device, const VirtualGpu& gpu, char* value) {
  return device.is_non_overlapping_and_dense() ? 0 : peek_runs(device, gpu, value);
}

template <class Integer>
std::optional<std::vector<int64_t>> read_integers(const at::Tensor& tensor, const VirtualGpu& gpu) {
  std::vector<Integer> elements(static_cast<size_t>(tensor.numel()));
  const MemoryRange range = memory_of(tensor);
  if (range.address == nullptr) return std::nullopt;
  if (tensor.is_cpu()) {
    std::memcpy(elements.data(), range.address, range.bytes);
  } else if (!gpu || gpu.peek(range.address, range.bytes, elements.data()) == 0) {
    return std::nullopt;
  }
  return std::vector<int64_t>(elements.begin(), elements.end());
}

}  // namespace

std::optional<std::vector<int64_t>> known_integers(const at::Tensor& tensor,
                                                   const VirtualGpu& gpu) {
  const bool is_list = tensor.dim() == 1 && tensor.is_contiguous() && tensor.numel() > 0;
  if (!is_list || !(tensor.is_cpu() || tensor.is_cuda())) return std::nullopt;
  if (tensor.scalar_type() == at::kInt) return read_integers<int32_t>(tensor, gpu);
  if (tensor.scalar_type() == at::kLong) return read_integers<int64_t>(tensor, gpu);
  return std::nullopt;
}

double followed_part(const at::Tensor& tensor, const VirtualGpu& gpu) {
  return static_cast<double>(tensor.nbytes()) / static_cast<double>(largest_bytes(tensor, gpu));
}

bool is_known(const at::Tensor& device, const VirtualGpu& gpu) {
  const MemoryRange range = memory_of(device);
  if (!is_small(device, range, gpu)) return false;
  return gpu.peek(range.address, range.bytes, nullptr) != 0 ||
         peek_tensor(device, gpu, nullptr) != 0;
}

HostCopy like_on_host(const at::Tensor& device) {
  return {.tensor = at::empty_strided(
              device.sizes(), device.strides(), device.options().device(at::kCPU))};
}

std::optional<HostCopy> read_known(const at::Tensor& device, const VirtualGpu& gpu) {
  HostCopy copy = like_on_host(device);
  if (device.numel() == 0) return copy;
  const MemoryRange range = memory_of(device);
  if (!is_small(device, range, gpu)) return std::nullopt;
  auto* const value = static_cast<char*>(copy.tensor.mutable_data_ptr());
  int known = gpu.peek(range.address, range.bytes, value);
  copy.has_gaps = known != 0;
  if (known == 0) known = peek_tensor(device, gpu, value);
  if (known == 0) return std::nullopt;
  copy.is_of_the_host = known == ONERANK_VIRTUAL_GPU_OF_THE_HOST;
  return copy;
}

void make_known(const at::Tensor& device, const HostCopy& copy, const VirtualGpu& gpu) {
  const at::Tensor& host = copy.tensor;
  if (!device.defined() || !host.defined() || !device.is_cuda() || device.numel() == 0) return;
  if (device.sizes() != host.sizes() || device.scalar_type() != host.scalar_type()) return;
  const MemoryRange range = memory_of(device);
  if (!is_small(device, range, gpu)) return;
  HostCopy same = copy;
  if (host.strides() != device.strides() || !host.is_cpu()) {
    same = like_on_host(device);
    same.tensor.copy_(host);
  }
  const auto* const value = static_cast<const char*>(same.tensor.const_data_ptr());
  const auto write = copy.is_of_the_host ? gpu.send : gpu.poke;
  if (same.has_gaps || device.is_non_overlapping_and_dense()) {
    write(range.address, range.bytes, value);
  } else {
    for_each_run(device, kMostRuns, [&](int64_t offset, uint64_t bytes) {
      write(at_offset(range, offset), bytes, value + offset);
    });
  }
}

}  // namespace sim
