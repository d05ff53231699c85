#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

namespace virtual_gpu {

/// What the host knows to be done, where it knows only what it has waited for (`events=ordered`).
///
/// Operations of a stream (kernels, copies, events, waits for events) are one sequence, and a
/// vector clock says for each stream how many operations of every sequence come before its next
/// one. An event keeps the clock of the moment at which it was recorded. The host has a clock too,
/// which only its own waits advance. An event has happened when the host's clock has reached the
/// event's. Thread-safe. In the other mode every operation is done at once, and nothing is kept.
///
/// A thread that polls must not do so for ever: after kRefusals refused questions in a row, over at
/// least kPatience and with no work given to the GPU between them, it is answered "done". If it is
/// a thread that gives the GPU work, that counts as waiting for what it asks about. A thread that
/// never does, such as the watchdog of ProcessGroupNCCL, gets its answer, and the host's clock
/// stays: what memory is free must not depend on the moments at which a watchdog wakes.
class Timeline {
 public:
  /// By sequence: how many of its operations come before.
  using Clock = std::vector<uint64_t>;

  Timeline(int device_count, bool is_ordered);

  /// A new stream's sequence. Those of default streams are the numbers of their devices. A closed
  /// one may be opened again and goes on where it was.
  int open(int device, bool waits_for_default_stream);
  void close(int sequence);

  /// The stream is given an operation that does not interest the host.
  void add_work(int sequence);
  void record(int sequence, Clock& event);
  void wait_for_event(int sequence, const Clock& event);

  /// What the host asks. True counts as waiting only as is said above.
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

  /// The default stream of a device waits for the streams that wait for it.
  void join_default_stream(int sequence);
  void advance(int sequence);
  bool is_done_locked(const Clock& event);

  const bool is_ordered_;
  std::mutex mutex_;
  std::vector<Sequence> sequences_;
  std::vector<int> waiting_;  // those open ones that wait for their device's default stream
  Clock host_;
};

}  // namespace virtual_gpu
