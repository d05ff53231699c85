#include "sim/exec/messages/barriers.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "estimator/profile/collective_call.h"
#include "sim/exec/messages/absent_answers.h"
#include "sim/exec/messages/collective_log.h"
#include "sim/exec/messages/peer_messages.h"

namespace sim {
namespace {

const std::string kBarrier = to_string(estimator::CollectiveKind::kBarrier);

}  // namespace

void pass_barrier(const BarrierCall& call) {
  if (call.ranks.size() < 2) return;
  const int64_t first = *std::min_element(call.ranks.begin(), call.ranks.end());
  PeerMessages& messages = peer_messages();
  const MessageName name = messages.next(
      {.group = call.group, .kind = kBarrier, .from = first, .to = MessageLine::kEveryone});
  if (call.own_rank == first) {
    if (messages.has_peers()) messages.say(name, {.is_known = true});
    return;
  }
  std::string why;
  if (messages.is_started(first)) {
    const PeerAnswer answer = messages.wait_for(name, call.own_rank);
    if (answer.message) return;
    why = answer.why_not;
  }
  note_absent_answer({.kind = kBarrier,
                      .group = call.description,
                      .members = static_cast<int64_t>(call.ranks.size()),
                      .why = why.empty() ? fmt::format("rank {} was not run", first) : why});
}

void pass_if_barrier(const onerank_nccl_call& call) {
  constexpr uint64_t kMostBytes = 8;  // ProcessGroupNCCL::barrier reduces one number
  if (call.bytes > kMostBytes || std::string_view(call.kind) != "all_reduce") return;
  const auto group = calling_group(call);
  if (!group || group->collective != "barrier") return;
  const auto member = static_cast<size_t>(call.rank);
  if (member >= group->ranks.size()) return;
  pass_barrier({.group = "nccl " + group->name,
                .description = group->description,
                .ranks = group->ranks,
                .own_rank = group->ranks[member]});
}

}  // namespace sim
