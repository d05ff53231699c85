#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "sim/virtual_gpu/cudart/stream.h"
#include "sim/virtual_gpu/cudart/work_log.h"
#include "sim/virtual_gpu/kernels/kernel_table.h"

/// Work of streams, and its capture into CUDA graphs. Captured work does nothing until its graph is
/// launched; each launch counts and tells it again. What was captured from the stream in which the
/// capture began is told in the stream of the launch, the rest in the streams from which it was
/// captured, with the records and waits by which these hang together.
namespace virtual_gpu {

/// What a stream is given to do.
struct Work {
  Event event;                    ///< its stream is set when it runs
  Kernel* kernel = nullptr;       ///< to count, if it is one
  std::optional<GemmShape> gemm;  ///< to count, if it is one
  std::optional<int> branch;      ///< number of the stream that is told instead of its own
  std::function<void()> effect;   ///< on values that are known; may be empty
};

/// Runs the work, or keeps it if the stream is captured.
void run_work(const Work& work, CUstream_st* stream);

/// Records a point in the stream, and returns its number: of a record, or of a point in the capture
/// if the stream is captured.
uint64_t run_record(Work work, CUstream_st* stream);

/// A work with copies of what its event points to.
struct CapturedWork {
  explicit CapturedWork(const Work& work);

  Work work;
  std::vector<uint64_t> addresses;
  std::vector<int32_t> numbers;
  std::optional<onerank_virtual_gpu_product> product;
  std::optional<onerank_virtual_gpu_attention> attention;

  /// The work, pointing to these copies.
  Work to_run() const;
};

struct MemoryPart {
  uint64_t address;
  uint64_t bytes;
};

struct CapturedGraph {
  uint64_t id = 0;  ///< of its capture
  std::vector<CapturedWork> works;
  /// What was written while it was captured: after each launch it holds something else.
  std::vector<MemoryPart> written;

  size_t nodes() const;
};

/// The capture of the process: there is one at a time. Thread-safe.
class Capture {
 public:
  /// False if another stream is being captured.
  bool begin(CUstream_st* origin);
  /// The graph; null if the capture was not begun by this stream, or has become invalid.
  std::shared_ptr<const CapturedGraph> end(CUstream_st* origin);

  /// The number of the stream's capture; 0 if it is not captured.
  uint64_t id_of(CUstream_st* stream) const;
  /// The stream waits for captured work of this capture, so it is captured too.
  void join(CUstream_st* stream);
  /// The program did what a capture does not allow.
  void invalidate();

  /// Keeps the work if the stream is captured. Returns its number among all that were ever kept; 0
  /// if it is not.
  uint64_t keep(const Work& work, CUstream_st* stream);
  /// The known values of this memory have changed, by an operator of the program.
  void values_change(uint64_t address, uint64_t bytes);

 private:
  mutable std::mutex mutex_;
  std::atomic<bool> is_active_ = false;
  bool is_valid_ = true;
  uint64_t id_ = 0;
  uint64_t works_ = 0;  // that were ever captured
  int origin_ = -1;
  std::set<int> streams_;
  CapturedGraph graph_;

  std::shared_ptr<const CapturedGraph> take(CUstream_st* origin);
};

Capture& capture();

/// Runs all works of a graph in the stream.
void run_graph(const CapturedGraph& graph, CUstream_st* stream);

}  // namespace virtual_gpu
