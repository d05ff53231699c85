#include "estimator/profile/run_record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "estimator/base/units.h"

namespace estimator {

std::string to_text(const GroupCall& group_call) {
  const CollectiveCall& call = group_call.call;
  std::string peer;
  if (call.peer >= 0) {
    peer = fmt::format("{} rank {}",
                       call.kind == CollectiveKind::kSend ? " to" : " from",
                       group_call.members.at(static_cast<std::size_t>(call.peer)));
  }
  return fmt::format("{}{} of {} bytes of {} over the {} group (ranks {})",
                     to_string(call.kind),
                     peer,
                     with_commas(call.bytes),
                     call.dtype,
                     to_string(call.group),
                     fmt::join(group_call.members, ", "));
}

}  // namespace estimator
