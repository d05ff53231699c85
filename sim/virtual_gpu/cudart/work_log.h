#pragma once

#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

#include "sim/virtual_gpu/control.h"

namespace virtual_gpu {

/// A call of cuBLAS: `batch` products of an m x k matrix and a k x n matrix, column-major.
struct GemmShape {
  int64_t m;
  int64_t n;
  int64_t k;
  int64_t batch;

  auto operator<=>(const GemmShape&) const = default;
};

using Event = onerank_virtual_gpu_event;

/// Tells the host program what happens on the device, and counts some of it. Thread-safe.
class WorkLog {
 public:
  /// There is one sink at a time, until the process ends; see onerank_virtual_gpu_set_event_sink().
  void set_event_sink(std::function<void(const Event&)> sink);
  bool has_event_sink() const { return event_sink_ != nullptr; }
  /// Whether the sink wants to know what a library's kernel is given that this thread launches; see
  /// onerank_virtual_gpu_ask_for_arguments().
  void set_wants_arguments(std::function<bool()> wants);
  bool wants_arguments() const;
  /// See onerank_virtual_gpu_set_timer().
  using Timer = std::function<double(uint64_t start, uint64_t end)>;
  void set_timer(Timer seconds_between);
  /// NaN if nobody knows.
  double seconds_between(uint64_t start, uint64_t end) const;
  /// Tells the sink, if there is one.
  void tell(const Event& event) const;

  void count_gemm(const GemmShape& shape);
  /// Visits the shapes in increasing order.
  void visit_gemms(const std::function<void(const GemmShape&, uint64_t count)>& visit) const;

  /// Counts a copy from a device to the host. If it was not known, the bytes were invented.
  void count_host_read(const void* address, size_t bytes, bool is_known);
  uint64_t host_reads() const { return host_reads_; }
  /// Sets the sink, which is called on the reading thread for each read that was not known.
  using InventionSink = std::function<void(const void* address, size_t bytes)>;
  void set_invention_sink(InventionSink sink);

 private:
  mutable std::mutex mutex_;
  std::map<GemmShape, uint64_t> gemms_;
  InventionSink invention_sink_;
  std::atomic<const std::function<void(const Event&)>*> event_sink_ = nullptr;
  std::atomic<const std::function<bool()>*> wants_arguments_ = nullptr;
  std::atomic<const Timer*> timer_ = nullptr;
  std::atomic<uint64_t> host_reads_ = 0;
};

}  // namespace virtual_gpu
