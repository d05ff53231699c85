#include "sim/exec/barriers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <string_view>

#include "sim/exec/collective_log.h"
#include "sim/exec/peer_messages.h"
#include "sim/exec/python.h"
#include "sim/exec/settings.h"

namespace sim {
namespace {

/// Once for each line of Python.
void tell_passed(const BarrierCall& call, int64_t first, const std::string& why) {
  constexpr size_t kMostTold = 8;
  static std::mutex mutex;
  static auto* const told = new std::set<std::string>;
  const PythonLine line = python_line();
  const std::string text =
      fmt::format("{}{}group {} of {} ranks: {}",
                  line.text,
                  line.text.empty() ? "" : ", ",
                  call.description,
                  call.ranks.size(),
                  why.empty() ? fmt::format("rank {} was not run", first) : why);
  const std::lock_guard lock(mutex);
  const char* folder = std::getenv(kExecFolderVariable);
  if (folder == nullptr || told->size() >= kMostTold || !told->insert(text).second) return;
  std::ofstream(std::filesystem::path(folder) / kPassedBarriers, std::ios::app) << text << '\n';
}

}  // namespace

void pass_barrier(const BarrierCall& call) {
  if (call.ranks.size() < 2) return;
  const int64_t first = *std::min_element(call.ranks.begin(), call.ranks.end());
  PeerMessages& messages = peer_messages();
  const MessageName name = messages.next(
      {.group = call.group, .kind = "barrier", .from = first, .to = MessageLine::kEveryone});
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
  tell_passed(call, first, why);
}

void pass_if_barrier(const onerank_nccl_call& call) {
  constexpr uint64_t kMostBytes = 8;  // ProcessGroupNCCL::barrier reduces one number
  if (call.bytes > kMostBytes || std::string_view(call.kind) != "all_reduce") return;
  const auto group = calling_group();
  if (!group || group->collective != "barrier") return;
  const auto member = static_cast<size_t>(call.rank);
  if (member >= group->ranks.size()) return;
  pass_barrier({.group = "nccl " + group->name,
                .description = group->description,
                .ranks = group->ranks,
                .own_rank = group->ranks[member]});
}

}  // namespace sim
