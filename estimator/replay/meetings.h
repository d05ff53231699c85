// Where the ranks of a replay meet: collectives, and both ends of messages.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "estimator/profile/program_record.h"

namespace estimator {

/// Tells communicators apart across ranks, by name and members, and by their order among those that
/// have the same.
struct CommunicatorKey {
  std::string name;
  int64_t first = 0;
  int64_t stride = 1;
  int64_t size = 1;
  int64_t number = 0;
  auto operator<=>(const CommunicatorKey&) const = default;
};

/// Of the program's communicators, in their order.
std::vector<CommunicatorKey> keys_of(const ProgramRecord& program);

/// Which ends of a message have been come to.
struct MessageEnds {
  bool send = false;
  bool receive = false;
};

class Meetings {
 public:
  /// A rank that runs `program` is played. All are added before the first one plays.
  void add_rank(const ProgramRecord& program);

  bool is_played(const CommunicatorKey& key, int64_t member) const;
  /// Whether a single member of the communicator is played, which meets nobody.
  bool is_alone(const CommunicatorKey& key) const { return members_.at(key).size() == 1; }

  /// Who has come to a collective, and with how many bytes the first of them.
  struct Arrivals {
    std::set<int64_t> members;
    int64_t first = 0;  ///< the member
    int64_t bytes = 0;
    bool is_complete = false;  ///< all that are played have come
  };

  /// The member comes to collective number `call` of its communicator.
  const Arrivals& meet(const CommunicatorKey& key, int64_t call, int64_t member, int64_t bytes);

  /// The members that are played and have not come to collective number `call`.
  std::vector<int64_t> missing(const CommunicatorKey& key, int64_t call) const;

  /// The member comes to its next message to or from another one. The result stays where it is.
  const MessageEnds& meet(const CommunicatorKey& key, int64_t from, int64_t to, bool is_send);

  /// How often somebody has come to something.
  int64_t changes() const { return changes_; }

 private:
  using Pair = std::tuple<CommunicatorKey, int64_t, int64_t>;  // from, to

  std::map<CommunicatorKey, std::set<int64_t>> members_;
  std::map<std::pair<CommunicatorKey, int64_t>, Arrivals> collectives_;
  std::map<std::pair<Pair, bool>, int64_t> counts_;
  std::map<std::pair<Pair, int64_t>, MessageEnds> messages_;
  int64_t changes_ = 0;
};

}  // namespace estimator
