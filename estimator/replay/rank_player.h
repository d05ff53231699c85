// One rank of a replay: its host, its streams, and what they share.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "estimator/replay/meetings.h"
#include "estimator/replay/trace_replay.h"

namespace estimator {

/// Plays the rank's iteration several times in a row; see trace_replay.h for the rules. Whoever
/// plays it calls settle() at every time that next() returns, in the order of time, and share()
/// when no rank can do any more at this time.
class RankPlayer {
 public:
  /// Everything must outlive the player.
  RankPlayer(const ReplayRank& rank, const LaunchCost& launch, Meetings& meetings);

  /// Does all that can be done at `now`. Whether that was anything.
  bool settle(double now);

  /// What runs from `now` on shares the GPU.
  void share(double now);

  /// When the next work ends or the host issues something for a stream that is idle; infinite if
  /// nothing will happen by itself.
  double next() const;

  bool is_done() const;
  /// For each call of NCCL that stands still "rank 3: reduce_scatter of dp, 16.00 MiB (call 2 of 9
  /// in step 1, backward, in layers.3): rank 1 has not come to it", where step 1 is the first that
  /// is played. Without such a call the streams and the host that wait.
  std::vector<std::string> waiting() const;
  /// Once, when it is done.
  PlayedRank take_result();

 private:
  struct OpenMessage {
    const MessageEnds* ends = nullptr;
    bool is_send = false;
    int64_t peer = 0;
    bool has_peer_come() const { return is_send ? ends->receive : ends->send; }
  };
  /// An event that the host has issued.
  struct Issued {
    int64_t event = 0;
    int64_t iteration = 0;
    double time = 0;
    int64_t call = -1;        ///< of NCCL: its number on the communicator
    int64_t collective = -1;  ///< its number among the collectives of the communicator
    int64_t work = -1;        ///< its place among the works of the last iteration
    bool has_come = false;
  };
  /// A work that a stream is doing: until `updated` all but `remaining` seconds of it were done.
  struct Running {
    Issued issued;
    double start = 0;
    double updated = 0;
    double remaining = 0;
    double rate = 0;
    /// Of a persistent product: NCCL occupies multiprocessors that its last blocks wait for.
    bool are_first_blocks = false;
    double end = std::numeric_limits<double>::infinity();  ///< share() sets it
  };
  struct Stream {
    int64_t number = 0;
    std::vector<Issued> issued = {};
    std::size_t begun = 0;                   ///< how many of these
    std::vector<OpenMessage> messages = {};  ///< of the next one
    std::optional<Running> running = {};

    bool is_empty() const { return begun == issued.size(); }
    bool is_idle() const { return is_empty() && !running; }
    Issued& next() { return issued[begun]; }
    const Issued& next() const { return issued[begun]; }
    void pass_next();
  };
  struct OwnCommunicator {
    CommunicatorKey key;
    int64_t member = 0;
    bool is_alone = false;
    int64_t issued = 0;       ///< calls
    int64_t collectives = 0;  ///< of these; the messages of its members may be more or fewer
    int64_t done = 0;
  };

  TraceEventKind kind_of(int64_t event) const;
  int64_t item_of(int64_t event) const;
  const TraceWork& work_of(int64_t event) const;
  const WorkPrice& price_of(const Running& running) const;
  double issue_seconds(int64_t event) const;
  double call_seconds(int64_t event) const;

  int64_t count_wanted() const;
  bool end_works(double now);
  bool issue(double now);
  std::optional<double> waited_for(int64_t event, double now) const;
  void queue_event();
  bool run(Stream& stream, double now);
  Running begun(const Issued& issued, double now) const;
  bool do_next(Stream& stream, double now);
  Stream& stream_of(int64_t number);
  bool are_idle(std::optional<int64_t> number = std::nullopt) const;
  bool can_communicate(Stream& stream);
  bool all_have_come(const Issued& issued);
  void begin_last_blocks(Running& running, double now) const;
  std::optional<double> time_of_record(int64_t item, int64_t iteration) const;
  const CommunicatorRecord& communicator_of(const Issued& issued) const;
  /// Whether it is a call of NCCL, and none before it on its communicator is open.
  bool is_next_call(const Issued& issued) const;
  std::string described(const Issued& issued, int64_t stream) const;
  std::string not_come(const Stream& stream) const;

  const ReplayRank& rank_;
  const RankProfile& profile_;
  const Trace& trace_;
  const std::vector<WorkPrice>& prices_;
  const std::vector<double>& issue_seconds_;
  const LaunchCost& launch_;
  std::map<int64_t, double> range_seconds_;  // of Python, before events
  Meetings& meetings_;
  const int64_t iterations_;
  int64_t works_left_;  // that are asked for and have not ended
  int64_t next_event_ = 0;
  int64_t iteration_ = 0;
  double host_;         // when the host has issued the last event
  double issuing_ = 0;  // seconds
  int64_t seen_changes_ = -1;
  bool is_shared_ = true;     // no work has begun or ended since share()
  std::vector<double> ends_;  // of iterations
  std::vector<std::optional<double>> records_;
  std::vector<Stream> streams_;       // in the order of their numbers
  std::vector<double> memory_needs_;  // of what runs
  std::vector<OwnCommunicator> communicators_;
  std::vector<PlayedWork> works_;
};

}  // namespace estimator
