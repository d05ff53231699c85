// When a device would have done what it was given, by the rules of the replay
// (estimator/replay/trace_replay.h) of one rank whose works share nothing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace sim {

/// In seconds since the clock was made. The host gives works to streams, each of which does what it
/// was given in order, once the host has asked for it. Streams, and records of events in them, have
/// the numbers of the virtual GPU. Not thread-safe.
class DeviceClock {
 public:
  struct Span {
    double start = 0;
    double end = 0;
  };

  /// The host is busy for so long, or until then.
  void host_works(double seconds) { host_ += seconds; }
  void host_is_at(double time);
  double host() const { return host_; }

  /// When the stream does a work of so many seconds.
  Span run(int stream, double seconds);

  /// `is_asked_for`: its time may be asked for. Streams and the host wait for any record.
  void record(int stream, uint64_t record, bool is_asked_for);
  void stream_waits(int stream, uint64_t record);
  void host_waits_for_record(uint64_t record);
  void host_waits_for_stream(int stream) { host_is_at(streams_[stream]); }
  void host_waits_for_device();

  /// Between two records whose time may be asked for; none if the clock has not seen both. A later
  /// record is at least kResolutionSeconds later.
  std::optional<double> seconds_between(uint64_t start, uint64_t end) const;

  /// "with a resolution of approximately 0.5 microseconds" (CUDA Runtime API,
  /// cudaEventElapsedTime).
  static constexpr double kResolutionSeconds = 0.5e-6;

 private:
  /// None of a record that was made so long ago that nobody has to wait for it.
  std::optional<double> time_of(uint64_t record) const;

  double host_ = 0;
  std::map<int, double> streams_;         // when each has done all that it was given
  std::map<uint64_t, double> asked_for_;  // records
  std::map<uint64_t, double> last_records_;
};

}  // namespace sim
