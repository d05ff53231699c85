#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

namespace virtual_gpu {

/// Which work counts as done, if the host knows only what it has waited for (`events=ordered`).
///
/// The operations of a stream (kernels, copies, events, waits for events) form a sequence. A vector
/// clock says for each stream how many operations of every sequence come before its next operation.
/// An event stores the clock of the moment at which it was recorded. The host also has a clock,
/// which advances only when the host waits. An event has happened when the host's clock has reached
/// the clock of the event. Thread-safe. In the other mode (`events=immediate`) every operation is
/// done at once, and nothing is stored.
///
/// A thread must not poll for ever. After kRefusals negative answers in a row, over at least
/// kPatienceSeconds and without new work for the GPU in between, the answer is "done". If the
/// thread is one that gives work to the GPU, this counts as waiting for what it asked about. If it
/// never gives work, such as the watchdog of ProcessGroupNCCL, it gets the answer but the host's
/// clock does not advance, because the free memory must not depend on the moments at which a
/// watchdog wakes.
class Timeline {
 public:
  /// For each sequence, how many of its operations come before.
  using Clock = std::vector<uint64_t>;

  Timeline(int device_count, bool is_ordered);

  /// Opens a sequence for a new stream and returns its number. The number for a default stream is
  /// that of its device. A closed sequence may be opened again for another stream; its count goes
  /// on.
  int open(int device, bool waits_for_default_stream);
  void close(int sequence);

  /// The stream is given an operation that the host does not ask about.
  void add_work(int sequence);
  void record(int sequence, Clock& event);
  void wait_for_event(int sequence, const Clock& event);

  /// The host asks whether work is done. A positive answer counts as waiting only as described
  /// above.
  bool is_done(const Clock& event);
  bool is_done(int sequence);
  void host_waits_for(const Clock& event);
  void host_waits_for(int sequence);
  void host_waits_for_device(int device);

  static constexpr int kRefusals = 10;
  static constexpr double kPatienceSeconds = 0.25;

 private:
  struct Sequence {
    int device;
    bool waits_for_default_stream;
    bool is_open = true;
    Clock before;
  };

  /// Makes the default stream of a device wait for the streams that wait for it.
  void join_default_stream(int sequence);
  void advance(int sequence);
  bool is_done_locked(const Clock& event);

  const bool is_ordered_;
  std::mutex mutex_;
  std::vector<Sequence> sequences_;
  std::vector<int> waiting_;  // open sequences that wait for their device's default stream
  Clock host_;
};

}  // namespace virtual_gpu
