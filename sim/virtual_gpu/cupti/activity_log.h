#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "sim/virtual_gpu/cupti/activity_records.h"
#include "sim/virtual_gpu/cupti/cupti_control.h"

namespace virtual_gpu {

/// What a profiler is told of the device's works and of the calls that asked for them, until it
/// asks for it. Thread-safe.
class ActivityLog {
 public:
  /// Of all records: more than any version of them has. What a version has beyond what is told
  /// reads as zero.
  static constexpr size_t kRecordBytes = 512;
  using RequestBuffer = void (*)(uint8_t** buffer, size_t* bytes, size_t* most_records);
  using CompleteBuffer =
      void (*)(void* context, uint32_t stream, uint8_t* buffer, size_t bytes, size_t valid_bytes);
  using Now = uint64_t (*)();

  void set_buffers(RequestBuffer request, CompleteBuffer complete);
  /// The profiler's clock, in whose times records are told; without one it is the system's, in
  /// nanoseconds.
  void set_clock(Now now);

  uint32_t called(onerank_cupti_kind kind);
  void ran(const onerank_cupti_work& work);
  /// Puts all records into the profiler's buffers.
  void flush();

  /// The calls of this thread belong to `id` from now on, until it is popped.
  static void push_id(uint32_t kind, uint64_t id);
  static uint64_t pop_id(uint32_t kind);

 private:
  struct Buffer {
    uint8_t* memory = nullptr;
    size_t bytes = 0;
  };
  struct Moment {
    uint64_t nanoseconds = 0;
    uint64_t told = 0;  // by the profiler's clock
  };
  using Activity =
      std::variant<KernelActivity, CopyActivity, FillActivity, CallActivity, CorrelationActivity>;
  void add_kernel(const onerank_cupti_work& work);
  void add_copy(const onerank_cupti_work& work);
  void add_fill(const onerank_cupti_work& work);
  /// By the profiler's clock, which runs as evenly as the system's from first_ to `last`.
  uint64_t told_time(uint64_t nanoseconds, const Moment& last) const;
  void put(const Activity& activity, const Moment& last, uint8_t* record) const;
  Buffer requested_buffer() const;
  /// With the first of them, which are taken away.
  void give_back(const Buffer& buffer, std::vector<Activity>& activities, const Moment& last) const;
  Moment moment() const;

  std::mutex mutex_;
  RequestBuffer request_ = nullptr;
  CompleteBuffer complete_ = nullptr;
  Now now_ = nullptr;
  Moment first_;
  std::atomic<uint32_t> calls_ = 0;
  /// kineto asks for what is told only after it was asked for a buffer.
  Buffer buffer_;
  std::vector<Activity> activities_;
  std::set<std::string> names_;  // of kernels, which activities point to
};

}  // namespace virtual_gpu
