// Words for a call of NCCL in a trace.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "estimator/profile/program_record.h"
#include "estimator/profile/trace.h"

namespace estimator {

/// "rank 12", or "member 3 of the group" where it is not known which ranks its members are.
std::string member_text(const CommunicatorRecord& communicator, int64_t member);

/// "ranks 1, 2 and 3"; of more than eight the first ones, and how many more.
std::string members_text(const CommunicatorRecord& communicator,
                         const std::vector<int64_t>& members);

/// "send to rank 1, receive from rank 1"; of more than two messages "7 sends, 7 receives". Without
/// messages the work's name.
std::string messages_text(const TraceWork& work, const CommunicatorRecord& communicator);

/// "all_reduce of dp, 16.00 MiB", "send to rank 1 of pp, 800 bytes". The communicator is the
/// work's.
std::string call_text(const TraceWork& work, const CommunicatorRecord& communicator);

/// "call 3 of 12": which of the calls of its communicator an event of the trace is.
std::string call_number_text(const Trace& trace, int64_t event);

}  // namespace estimator
