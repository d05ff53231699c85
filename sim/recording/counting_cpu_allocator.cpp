#include "sim/recording/counting_cpu_allocator.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

#include <algorithm>
#include <limits>
#include <new>

#include "estimator/base/units.h"

namespace sim {
namespace {

const c10::Device kCpuDevice(c10::DeviceType::CPU);

/// Stands in front of each block, so that freeing needs nothing else. As large as the alignment
/// that libtorch's kernels count on.
struct alignas(64) BlockHeader {
  CountingCpuAllocator* owner;
  int64_t block_bytes;  ///< as counted: 0 when it is not
};

BlockHeader* header_of(void* data) { return static_cast<BlockHeader*>(data) - 1; }

/// libtorch has no kind for programs of its own; nothing in a release sets this one.
constexpr auto kNotCounted = c10::DebugInfoKind::TEST_INFO;

bool is_counted() { return c10::ThreadLocalDebugInfo::get(kNotCounted) == nullptr; }

void report(void* data, int64_t change_bytes, int64_t current_bytes) {
  if (!c10::memoryProfilingEnabled()) return;
  c10::reportMemoryUsageToProfiler(data, change_bytes, current_bytes, current_bytes, kCpuDevice);
}

}  // namespace

NotCounted::NotCounted()
    : carried_by_threads_(kNotCounted, std::make_shared<c10::DebugInfoBase>()) {}

CountingCpuAllocator& CountingCpuAllocator::install() {
  // Never destroyed: tensors may be freed while the process ends.
  static CountingCpuAllocator* const allocator = [] {
    auto* made = new CountingCpuAllocator;
    c10::SetCPUAllocator(made, std::numeric_limits<uint8_t>::max());
    return made;
  }();
  return *allocator;
}

int64_t CountingCpuAllocator::current_bytes() const {
  const std::lock_guard lock(mutex_);
  return current_bytes_;
}

int64_t CountingCpuAllocator::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return peak_bytes_;
}

void CountingCpuAllocator::reset_peak() {
  const std::lock_guard lock(mutex_);
  peak_bytes_ = current_bytes_;
}

c10::DataPtr CountingCpuAllocator::allocate(size_t bytes) {
  if (bytes == 0) return {nullptr, nullptr, &CountingCpuAllocator::free, kCpuDevice};
  const int64_t block_bytes =
      is_counted() ? estimator::round_up(static_cast<int64_t>(bytes), kBlockBytes) : 0;
  void* memory = c10::alloc_cpu(bytes + sizeof(BlockHeader));
  auto* header = new (memory) BlockHeader{this, block_bytes};
  void* data = header + 1;
  if (block_bytes > 0) report(data, block_bytes, count(block_bytes));
  return {data, data, &CountingCpuAllocator::free, kCpuDevice};
}

c10::DeleterFnPtr CountingCpuAllocator::raw_deleter() const { return &CountingCpuAllocator::free; }

void CountingCpuAllocator::copy_data(void* destination, const void* source, size_t bytes) const {
  default_copy_data(destination, source, bytes);
}

void CountingCpuAllocator::free(void* data) {
  if (data == nullptr) return;
  BlockHeader* header = header_of(data);
  if (header->block_bytes > 0) {
    report(data, -header->block_bytes, header->owner->count(-header->block_bytes));
  }
  c10::free_cpu(header);
}

int64_t CountingCpuAllocator::count(int64_t block_bytes) {
  const std::lock_guard lock(mutex_);
  current_bytes_ += block_bytes;
  peak_bytes_ = std::max(peak_bytes_, current_bytes_);
  return current_bytes_;
}

}  // namespace sim
