#include "estimator/replay/meetings.h"

#include <algorithm>
#include <iterator>

namespace estimator {

std::vector<CommunicatorKey> keys_of(const ProgramRecord& program) {
  std::vector<CommunicatorKey> keys;
  for (const CommunicatorRecord& record : program.communicators) {
    const RankGroup group = group_of(record);
    CommunicatorKey key{record.name, group.first, group.spans.front().stride, record.size};
    while (std::find(keys.begin(), keys.end(), key) != keys.end()) ++key.number;
    keys.push_back(key);
  }
  return keys;
}

void Meetings::add_rank(const ProgramRecord& program) {
  const std::vector<CommunicatorKey> keys = keys_of(program);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    members_[keys[i]].insert(program.communicators[i].rank);
  }
}

bool Meetings::is_played(const CommunicatorKey& key, int64_t member) const {
  return members_.at(key).count(member) > 0;
}

const Meetings::Arrivals& Meetings::meet(const CommunicatorKey& key,
                                         int64_t call,
                                         int64_t member,
                                         int64_t bytes) {
  Arrivals& arrived = collectives_[{key, call}];
  if (arrived.members.empty()) {
    arrived.first = member;
    arrived.bytes = bytes;
  }
  if (arrived.members.insert(member).second) ++changes_;
  arrived.is_complete = arrived.members.size() == members_.at(key).size();
  return arrived;
}

std::vector<int64_t> Meetings::missing(const CommunicatorKey& key, int64_t call) const {
  const std::set<int64_t>& played = members_.at(key);
  std::vector<int64_t> missing;
  const auto arrived = collectives_.find({key, call});
  if (arrived == collectives_.end()) return {played.begin(), played.end()};
  const std::set<int64_t>& have_come = arrived->second.members;
  std::set_difference(played.begin(),
                      played.end(),
                      have_come.begin(),
                      have_come.end(),
                      std::back_inserter(missing));
  return missing;
}

const MessageEnds& Meetings::meet(const CommunicatorKey& key,
                                  int64_t from,
                                  int64_t to,
                                  bool is_send) {
  const Pair pair{key, from, to};
  MessageEnds& ends = messages_[{pair, counts_[{pair, is_send}]++}];
  (is_send ? ends.send : ends.receive) = true;
  ++changes_;
  return ends;
}

}  // namespace estimator
