#include "estimator/replay/call_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "estimator/base/units.h"

namespace estimator {
namespace {

std::string bytes_text(int64_t bytes) {
  return bytes < kMiB ? with_commas(bytes) + " bytes" : format_mib(bytes) + " MiB";
}

std::string message_text(const TraceMessage& message, const CommunicatorRecord& communicator) {
  return (message.is_send ? "send to " : "receive from ") + member_text(communicator, message.peer);
}

std::string counted(int64_t count, const char* what) {
  return fmt::format("{} {}{}", with_commas(count), what, count == 1 ? "" : "s");
}

}  // namespace

std::string member_text(const CommunicatorRecord& communicator, int64_t member) {
  if (!is_placed(communicator)) return fmt::format("member {} of the group", member);
  return fmt::format("rank {}", group_of(communicator).member(member));
}

std::string members_text(const CommunicatorRecord& communicator,
                         const std::vector<int64_t>& members) {
  constexpr std::size_t kMost = 8;
  if (members.size() == 1) return member_text(communicator, members.front());
  const RankGroup group = group_of(communicator);
  const bool are_placed = is_placed(communicator);
  std::vector<int64_t> numbers;
  numbers.reserve(members.size());
  for (const int64_t member : members) {
    numbers.push_back(are_placed ? group.member(member) : member);
  }
  const bool are_all = numbers.size() <= kMost;
  const auto more = static_cast<int64_t>(numbers.size() - kMost);
  const std::string last =
      are_all ? fmt::format("{}", numbers.back()) : with_commas(more) + " more";
  numbers.resize(are_all ? numbers.size() - 1 : kMost);
  return fmt::format("{} {} and {}{}",
                     are_placed ? "ranks" : "members",
                     fmt::join(numbers, ", "),
                     last,
                     are_placed ? "" : " of the group");
}

std::string messages_text(const TraceWork& work, const CommunicatorRecord& communicator) {
  constexpr std::size_t kMost = 2;
  if (work.messages.empty()) return work.name;
  const auto count = static_cast<int64_t>(work.messages.size());
  if (work.messages.size() <= kMost) {
    std::vector<std::string> texts;
    for (const TraceMessage& message : work.messages) {
      texts.push_back(message_text(message, communicator));
    }
    return fmt::format("{}", fmt::join(texts, ", "));
  }
  const auto sends = std::count_if(
      work.messages.begin(), work.messages.end(), [](const auto& m) { return m.is_send; });
  return counted(sends, "send") + ", " + counted(count - sends, "receive");
}

std::string call_text(const TraceWork& work, const CommunicatorRecord& communicator) {
  const bool is_message = work.kind == WorkKind::kMessages;
  return fmt::format("{} of {}, {}",
                     is_message ? messages_text(work, communicator) : work.name,
                     communicator.name.empty() ? "a communicator" : communicator.name,
                     bytes_text(work.bytes));
}

std::string call_number_text(const Trace& trace, int64_t event) {
  const auto called_at = [&](std::size_t place) -> int64_t {
    const auto kind = static_cast<TraceEventKind>(trace.events.kind[place]);
    if (kind != TraceEventKind::kLaunch) return -1;
    return trace.works[static_cast<std::size_t>(trace.events.item[place])].communicator;
  };
  const int64_t communicator = called_at(static_cast<std::size_t>(event));
  int64_t number = 0;
  int64_t all = 0;
  for (std::size_t place = 0; place < trace.events.kind.size(); ++place) {
    if (called_at(place) != communicator) continue;
    ++all;
    if (static_cast<int64_t>(place) <= event) ++number;
  }
  return fmt::format("call {} of {}", with_commas(number), with_commas(all));
}

}  // namespace estimator
