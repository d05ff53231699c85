#pragma once

#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

namespace virtual_gpu {

/// What cuBLAS was asked for: `batch` products of an m x k with a k x n matrix, column-major.
struct GemmShape {
  int64_t m;
  int64_t n;
  int64_t k;
  int64_t batch;

  auto operator<=>(const GemmShape&) const = default;
};

/// The work of the device that is no kernel of the program's own, counted. Thread-safe.
class WorkLog {
 public:
  void count_gemm(const GemmShape& shape);
  /// In increasing order of the shape.
  void visit_gemms(const std::function<void(const GemmShape&, uint64_t count)>& visit) const;

  /// A copy from a device to the host; what was not known was invented.
  void count_host_read(size_t bytes, bool is_known);
  uint64_t host_reads() const { return host_reads_; }
  /// Called for each read that was not known, on the reading thread.
  void set_invention_sink(std::function<void(size_t bytes)> sink);

 private:
  mutable std::mutex mutex_;
  std::map<GemmShape, uint64_t> gemms_;
  std::function<void(size_t bytes)> invention_sink_;
  std::atomic<uint64_t> host_reads_ = 0;
};

}  // namespace virtual_gpu
