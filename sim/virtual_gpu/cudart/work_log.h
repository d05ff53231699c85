#pragma once

#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

namespace virtual_gpu {

/// A call of cuBLAS: `batch` products of an m x k matrix and a k x n matrix, column-major.
struct GemmShape {
  int64_t m;
  int64_t n;
  int64_t k;
  int64_t batch;

  auto operator<=>(const GemmShape&) const = default;
};

/// Counts the device's work other than the program's own kernels. Thread-safe.
class WorkLog {
 public:
  void count_gemm(const GemmShape& shape);
  /// Visits the shapes in increasing order.
  void visit_gemms(const std::function<void(const GemmShape&, uint64_t count)>& visit) const;

  /// Counts a copy from a device to the host. If it was not known, the bytes were invented.
  void count_host_read(size_t bytes, bool is_known);
  uint64_t host_reads() const { return host_reads_; }
  /// Sets the sink, which is called on the reading thread for each read that was not known.
  void set_invention_sink(std::function<void(size_t bytes)> sink);

 private:
  mutable std::mutex mutex_;
  std::map<GemmShape, uint64_t> gemms_;
  std::function<void(size_t bytes)> invention_sink_;
  std::atomic<uint64_t> host_reads_ = 0;
};

}  // namespace virtual_gpu
