// What the ranks of one `onerank exec` tell each other. Their processes run side by side, or one
// after the other, and share a folder; each says there what it broadcasts, scatters or sends, as
// far as the host knows it, and a rank that waits for such a message finds it there.
//
// The folder:
//   said/<rank>/<name>   a message; the name is a hash of everything that identifies it
//   asked/<rank>         the user, or `--ranks auto`, has asked for this rank
//   wanted/<rank>        somebody waits for this rank, which may have to be started
//   started/<rank>       it is running, or has run
//   ended/<rank>         it has ended: it will say nothing more
//   waits/<rank>         for which rank it waits now
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <tuple>

namespace sim {

/// A variable with the path of the folder. Not set: no other rank is run.
inline constexpr const char* kPeersVariable = "ONERANK_EXEC_PEERS";

/// Messages of one kind between the same ranks, in the order of the calls.
struct MessageLine {
  std::string group;  ///< c10d's name of the process group, behind that of its backend
  std::string kind;   ///< as in estimator::CollectiveKind
  int64_t from = 0;   ///< rank of the world
  int64_t to = 0;     ///< rank of the world; kEveryone for a broadcast

  static constexpr int64_t kEveryone = -1;
};

/// One of them.
struct MessageName {
  MessageLine line;
  int64_t number = 0;  ///< from 0

  std::string text() const;
};

struct PeerMessage {
  bool is_known = false;  ///< false: only kernels would know it
  int64_t size = 0;       ///< in bytes, also of one that is not known
  std::string bytes;      ///< as many from its beginning as are known
};

/// What a rank that waited got.
struct PeerAnswer {
  std::optional<PeerMessage> message;
  std::string why_not;  ///< of no message: "rank 3 has ended and did not send it"
};

/// Thread-safe.
class PeerMessages {
 public:
  /// The folder may be empty; then nobody else is run.
  explicit PeerMessages(std::filesystem::path folder);

  bool has_peers() const { return !folder_.empty(); }

  /// The next message of a line: of one that is said and of one that is waited for.
  MessageName next(const MessageLine& line);

  void say(const MessageName& name, const PeerMessage& message);

  /// Whether this rank is run too, and has begun.
  bool is_started(int64_t rank) const;

  /// Whether this rank has been run, or is run together with this one: what it says can be waited
  /// for by everybody. False for a rank that is only started because somebody waits for it.
  bool is_asked(int64_t rank);

  /// The message, if it is said by now. Its rank is started if it is not running.
  std::optional<PeerMessage> look_for(const MessageName& name) const;

  /// Waits until the message is said, or cannot be said any more.
  PeerAnswer wait_for(const MessageName& name, int64_t own_rank);

 private:
  std::filesystem::path file_of(const MessageName& name) const;
  std::optional<PeerMessage> find(const MessageName& name) const;
  void want(int64_t rank) const;
  void be_started(int64_t rank);
  /// "rank 1 waits for rank 2, which waits for rank 1", or "".
  std::string circle(int64_t from, int64_t own_rank) const;

  const std::filesystem::path folder_;
  std::mutex mutex_;  // of what follows
  std::map<std::tuple<std::string, std::string, int64_t, int64_t>, int64_t> numbers_;
  std::set<int64_t> started_;
  std::optional<std::set<int64_t>> asked_;  // read once: it does not change while a rank runs
};

/// Of this process.
PeerMessages& peer_messages();

/// For the program that starts the ranks.
class PeerRanks {
 public:
  explicit PeerRanks(const std::filesystem::path& folder);

  /// Before any of those that are asked for together is started.
  void asked(int64_t rank) const;
  void started(int64_t rank) const;
  void ended(int64_t rank) const;
  bool is_waiting(int64_t rank) const;
  /// Those for whom somebody waits, and that were not started.
  std::set<int64_t> wanted() const;

 private:
  const std::filesystem::path folder_;
};

}  // namespace sim
