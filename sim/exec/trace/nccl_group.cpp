#include "sim/exec/trace/nccl_group.h"

#include <string_view>
#include <utility>

namespace sim {

using estimator::TraceWork;
using estimator::WorkKind;

NcclGroup::NcclGroup(const onerank_nccl_call& call, TraceWork work)
    : work_(std::move(work)), ranks_(call.size), roots_{call.peer} {}

void NcclGroup::add(const onerank_nccl_call& call, const TraceWork& work) {
  work_.bytes += work.bytes;
  work_.messages.insert(work_.messages.end(), work.messages.begin(), work.messages.end());
  roots_.insert(call.peer);
}

TraceWork NcclGroup::work() const {
  TraceWork joined = work_;
  const bool is_from_all = ranks_ > 1 && roots_.size() == static_cast<size_t>(ranks_);
  if (joined.name == "broadcast" && is_from_all) joined.name = "all_gather";
  return joined;
}

TraceWork nccl_work(const onerank_nccl_call& call) {
  const std::string_view kind = call.kind;
  const bool is_message = kind == "send" || kind == "recv";
  TraceWork work{.kind = is_message ? WorkKind::kMessages : WorkKind::kCollective,
                 .name = call.kind,
                 .dtype = call.dtype,
                 .bytes = static_cast<int64_t>(call.bytes),
                 .communicator = call.communicator};
  if (is_message) {
    work.name = "messages";
    work.messages = {{.is_send = kind == "send", .bytes = work.bytes, .peer = call.peer}};
  }
  return work;
}

}  // namespace sim
