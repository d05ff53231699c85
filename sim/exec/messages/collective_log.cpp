#include "sim/exec/messages/collective_log.h"

#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>
#include <utility>

#include "sim/exec/program/settings.h"

namespace sim {
namespace {

/// The process group whose collective this thread is in, or null.
const torch::ParamCommsDebugInfo* told_group() {
  return static_cast<torch::ParamCommsDebugInfo*>(
      c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PARAM_COMMS_INFO));
}

struct MadeGroup {
  std::string description;
  std::vector<int64_t> ranks;
};

class MadeGroups {
 public:
  void add(const std::string& name, MadeGroup group) {
    const std::lock_guard lock(mutex_);
    groups_[name] = std::move(group);
  }
  MadeGroup named(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto found = groups_.find(name);
    return found == groups_.end() ? MadeGroup{.description = name} : found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, MadeGroup> groups_;
};

MadeGroups& made_groups() {
  static auto* const groups = new MadeGroups;
  return *groups;
}

/// A communicator is made of another one's while torch.distributed makes a group, or in the first
/// collective of the group.
thread_local int size_of_begun = 0;

/// The distance between neighbours, or -1 where it differs.
int64_t stride_of(const std::vector<int64_t>& ranks) {
  if (ranks.size() < 2) return ranks.empty() ? -1 : 1;
  const int64_t stride = ranks[1] - ranks[0];
  for (size_t i = 2; i < ranks.size(); ++i) {
    if (ranks[i] - ranks[i - 1] != stride) return -1;
  }
  return stride;
}

/// torch makes a communicator for each two members that send and receive outside of a batch, and
/// tells of a message which member of the group the other one is.
std::vector<int64_t> pair_of(const std::vector<int64_t>& ranks, int other) {
  const char* const own = std::getenv(kExecWantedRankVariable);
  if (own == nullptr || other < 0 || other >= static_cast<int>(ranks.size())) return {};
  std::vector<int64_t> pair = {std::strtoll(own, nullptr, 10), ranks[static_cast<size_t>(other)]};
  std::sort(pair.begin(), pair.end());
  return pair;
}

}  // namespace

void group_begins(const std::string& name, std::string description, std::vector<int64_t> ranks) {
  size_of_begun = static_cast<int>(ranks.size());
  made_groups().add(name, {std::move(description), std::move(ranks)});
}

void group_is_made() { size_of_begun = 0; }

std::optional<CallingGroup> calling_group(const onerank_nccl_call& call) {
  const auto* told = told_group();
  if (told == nullptr) return std::nullopt;
  CallingGroup group{.name = told->getProcessGroupName(),
                     .description = told->getProcessGroupDesc(),
                     .collective = told->getCollectiveName(),
                     .ranks = told->getGroupRanks()};
  if (group.ranks.empty()) {
    MadeGroup made = made_groups().named(group.name);
    group.description = std::move(made.description);
    group.ranks = std::move(made.ranks);
  }
  constexpr int kPair = 2;
  if (call.size == kPair && group.ranks.size() > kPair) {
    group.ranks = pair_of(group.ranks, told->getRank());
  }
  return group;
}

int calling_group_size() {
  const auto* group = told_group();
  return group == nullptr ? size_of_begun : group->getWorldSize();
}

bool is_reduction(std::string_view kind) {
  constexpr std::string_view kReductions[] = {"all_reduce", "reduce_scatter", "reduce"};
  return std::find(std::begin(kReductions), std::end(kReductions), kind) != std::end(kReductions);
}

CollectiveLog::Key CollectiveLog::told(const onerank_nccl_call& call) {
  const std::lock_guard lock(mutex_);
  auto& communicator = communicators_[call.communicator];
  communicator.name = call.communicator_name;
  communicator.size = call.size;
  communicator.rank = call.rank;
  if (auto group = calling_group(call)) {
    communicator.name = std::move(group->description);
    communicator.rank_stride = stride_of(group->ranks);
    communicator.first_rank = communicator.rank_stride > 0 ? group->ranks.front() : -1;
  }
  return {call.communicator, call.kind, call.dtype, static_cast<int64_t>(call.bytes), call.peer};
}

void CollectiveLog::add(const Key& call, bool in_iteration) {
  const std::lock_guard lock(mutex_);
  ++all_[call];
  if (in_iteration) ++iteration_[call];
}

CollectiveLog::Counts CollectiveLog::iteration() const {
  const std::lock_guard lock(mutex_);
  return iteration_;
}

void CollectiveLog::forget_iteration() {
  const std::lock_guard lock(mutex_);
  iteration_.clear();
}

std::vector<estimator::CommunicatorRecord> CollectiveLog::records(const Counts& iteration) const {
  const std::lock_guard lock(mutex_);
  auto communicators = communicators_;
  for (const auto& [key, total] : all_) {
    const auto counted = iteration.find(key);
    communicators.at(key.communicator)
        .calls.push_back({key.kind,
                          key.dtype,
                          key.bytes,
                          key.peer,
                          total,
                          counted == iteration.end() ? 0 : counted->second});
  }
  std::vector<estimator::CommunicatorRecord> records;
  records.reserve(communicators.size());
  for (auto& [number, communicator] : communicators) records.push_back(std::move(communicator));
  return records;
}

estimator::CommunicatorRecord CollectiveLog::communicator(int number) const {
  const std::lock_guard lock(mutex_);
  return communicators_.at(number);
}

int64_t CollectiveLog::place_of(int64_t communicator) const {
  const std::lock_guard lock(mutex_);
  const auto found = communicators_.find(static_cast<int>(communicator));
  return std::distance(communicators_.begin(), found);
}

}  // namespace sim
