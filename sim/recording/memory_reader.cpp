#include "sim/recording/memory_reader.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "sim/recording/counting_cpu_allocator.h"
#include "sim/tracking/allocator_record.h"

namespace sim {
namespace {

using estimator::MemoryReading;

class CudaMemoryReader final : public MemoryReader {
 public:
  c10::DeviceType device_type() const override { return c10::DeviceType::CUDA; }

  MemoryReading current() const override {
    const auto stats = device_stats();
    return {.allocated_bytes = stats.allocated_bytes[kAllPools].current,
            .reserved_bytes = stats.reserved_bytes[kAllPools].current};
  }

  MemoryReading peak() const override {
    const auto stats = device_stats();
    return {.allocated_bytes = stats.allocated_bytes[kAllPools].peak,
            .reserved_bytes = stats.reserved_bytes[kAllPools].peak};
  }

  void reset_peak() override { allocator_->resetPeakStats(device_.index()); }

  estimator::AllocatorRecord allocator() const override { return allocator_record(device_stats()); }

  void finish_work() const override { guard_.synchronizeDevice(device_.index()); }

 private:
  static constexpr auto kAllPools =
      static_cast<size_t>(c10::CachingDeviceAllocator::StatType::AGGREGATE);

  c10::CachingDeviceAllocator::DeviceStats device_stats() const {
    return allocator_->getDeviceStats(device_.index());
  }

  c10::DeviceAllocator* allocator_ = c10::getDeviceAllocator(c10::DeviceType::CUDA);
  c10::impl::VirtualGuardImpl guard_{c10::DeviceType::CUDA};
  c10::Device device_ = guard_.getDevice();
};

class CpuMemoryReader final : public MemoryReader {
 public:
  c10::DeviceType device_type() const override { return c10::DeviceType::CPU; }
  MemoryReading current() const override { return reading(allocator_.current_bytes()); }
  MemoryReading peak() const override { return reading(allocator_.peak_bytes()); }
  void reset_peak() override { allocator_.reset_peak(); }
  estimator::AllocatorRecord allocator() const override { return {}; }
  void finish_work() const override {}  // an operator on the CPU returns when it is done

 private:
  static MemoryReading reading(int64_t bytes) {
    return {.allocated_bytes = bytes, .reserved_bytes = bytes};
  }

  CountingCpuAllocator& allocator_ = CountingCpuAllocator::install();
};

}  // namespace

std::unique_ptr<MemoryReader> make_memory_reader(estimator::DeviceKind kind) {
  if (kind == estimator::DeviceKind::kCpu) return std::make_unique<CpuMemoryReader>();
  return std::make_unique<CudaMemoryReader>();
}

}  // namespace sim
