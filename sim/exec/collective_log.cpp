#include "sim/exec/collective_log.h"

#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <iterator>
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>
#include <utility>

namespace sim {
namespace {

/// The process group whose collective this thread is in, or null.
const torch::ParamCommsDebugInfo* told_group() {
  return static_cast<torch::ParamCommsDebugInfo*>(
      c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PARAM_COMMS_INFO));
}

}  // namespace

std::optional<CallingGroup> calling_group() {
  const auto* group = told_group();
  if (group == nullptr) return std::nullopt;
  return CallingGroup{.name = group->getProcessGroupName(),
                      .description = group->getProcessGroupDesc(),
                      .collective = group->getCollectiveName(),
                      .ranks = group->getGroupRanks()};
}

int calling_group_size() {
  const auto* group = told_group();
  return group == nullptr ? 0 : group->getWorldSize();
}

bool is_reduction(std::string_view kind) {
  constexpr std::string_view kReductions[] = {"all_reduce", "reduce_scatter", "reduce"};
  return std::find(std::begin(kReductions), std::end(kReductions), kind) != std::end(kReductions);
}

void CollectiveLog::add(const onerank_nccl_call& call, bool in_iteration) {
  const std::lock_guard lock(mutex_);
  auto& communicator = communicators_[call.communicator];
  communicator.name = call.communicator_name;
  communicator.size = call.size;
  communicator.rank = call.rank;
  if (const auto* group = told_group()) {
    communicator.name = group->getProcessGroupDesc();
    communicator.first_rank = group->getGlobalRankStart();
    communicator.rank_stride = group->getGlobalRankStride();
  }
  Count& count = calls_[{
      call.communicator, call.kind, call.dtype, static_cast<int64_t>(call.bytes), call.peer}];
  ++count.total;
  if (in_iteration) ++count.in_iteration;
}

std::vector<estimator::CommunicatorRecord> CollectiveLog::records() const {
  const std::lock_guard lock(mutex_);
  auto communicators = communicators_;
  for (const auto& [key, count] : calls_) {
    communicators.at(key.communicator)
        .calls.push_back(
            {key.kind, key.dtype, key.bytes, key.peer, count.total, count.in_iteration});
  }
  std::vector<estimator::CommunicatorRecord> records;
  records.reserve(communicators.size());
  for (auto& [number, communicator] : communicators) records.push_back(std::move(communicator));
  return records;
}

int64_t CollectiveLog::place_of(int64_t communicator) const {
  const std::lock_guard lock(mutex_);
  const auto found = communicators_.find(static_cast<int>(communicator));
  return std::distance(communicators_.begin(), found);
}

}  // namespace sim
