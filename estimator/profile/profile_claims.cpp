#include "estimator/profile/profile_claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "estimator/base/fields.h"

namespace estimator {
namespace {

constexpr const char* kMakeItAgain = "the document was changed or damaged: make it again";

/// Reports what does not hold.
class Claims {
 public:
  explicit Claims(FieldReader& reader) : reader_(reader) {}

  void require(bool holds, const std::string& path, const char* what, const std::string& found) {
    if (!holds) reader_.report(path, what, found, kMakeItAgain);
  }
  void at_most(int64_t value, int64_t most, const std::string& path, const char* what) {
    require(value <= most, path, what, fmt::format("{}, against {}", value, most));
  }
  void equal(int64_t value, int64_t other, const std::string& path, const char* what) {
    require(value == other, path, what, fmt::format("{}, against {}", value, other));
  }
  void within_reserved(const MemoryReading& reading, const std::string& path) {
    at_most(reading.allocated_bytes,
            reading.reserved_bytes,
            path + ".allocated_bytes",
            "more is allocated than reserved");
  }

 private:
  FieldReader& reader_;
};

constexpr int64_t MemoryReading::*kReadings[] = {&MemoryReading::allocated_bytes,
                                                 &MemoryReading::reserved_bytes};

void check_phase(const PhaseRecord& phase, const std::string& path, Claims& claims) {
  claims.within_reserved(phase.before, path + ".before");
  claims.within_reserved(phase.after, path + ".after");
  claims.within_reserved(phase.peak, path + ".peak");
  for (const auto reading : kReadings) {
    claims.at_most(std::max(phase.before.*reading, phase.after.*reading),
                   phase.peak.*reading,
                   path + ".peak",
                   "a phase has more at its start or end than at its peak");
  }
}

MemoryReading smaller(const MemoryReading& a, const PeakRecord& b) {
  return {.allocated_bytes = std::min(a.allocated_bytes, b.allocated_bytes),
          .reserved_bytes = std::min(a.reserved_bytes, b.reserved_bytes)};
}

void check_phases(const RankProfile& profile, Claims& claims) {
  claims.require(!profile.phases.empty(), "phases", "no phase was run", "[]");
  MemoryReading largest;
  for (std::size_t i = 0; i < profile.phases.size(); ++i) {
    const PhaseRecord& phase = profile.phases[i];
    check_phase(phase, fmt::format("phases[{}]", i), claims);
    for (const auto reading : kReadings) {
      largest.*reading = std::max(largest.*reading, phase.peak.*reading);
    }
  }
  // Of a program that goes on after a failure, what it did after that is judged.
  const bool is_of_last_phases = profile.program && profile.program->caught_failures > 0;
  if (is_of_last_phases) largest = smaller(largest, profile.peak);
  constexpr const char* kOther = "the peak is not the largest of the phases'";
  claims.equal(
      profile.peak.allocated_bytes, largest.allocated_bytes, "peak.allocated_bytes", kOther);
  claims.equal(profile.peak.reserved_bytes, largest.reserved_bytes, "peak.reserved_bytes", kOther);
}

void check_device(const RankProfile& profile, Claims& claims) {
  if (profile.device.kind == DeviceKind::kCpu) return;  // its memory is nobody's question
  claims.require(
      profile.device.total_bytes > 0, "device.total_bytes", "the GPU has no memory", "0");
  if (profile.limit_lifted) return;
  claims.at_most(profile.peak.reserved_bytes,
                 profile.device.total_bytes,
                 "peak.reserved_bytes",
                 "more is reserved than the device has");
}

void check_peers(const RankProfile& profile, Claims& claims) {
  for (std::size_t i = 0; i < profile.collectives.size(); ++i) {
    const CollectiveCall& call = profile.collectives[i].call;
    const bool is_to_one = call.kind == CollectiveKind::kSend || call.kind == CollectiveKind::kRecv;
    claims.require((!is_to_one || call.peer >= 0) && call.peer < call.group_size,
                   fmt::format("collectives[{}].peer", i),
                   "the peer is no member of the group",
                   std::to_string(call.peer));
  }
}

void check_shard(const RankProfile& profile, Claims& claims) {
  claims.require(profile.plan.json().is_object() && !profile.plan.json().empty(),
                 "plan",
                 "no plan is there",
                 "");
  claims.require(!profile.operators.empty(), "operators", "the shard computed nothing", "[]");
  check_peers(profile, claims);
  claims.at_most(profile.micro_batches.executed,
                 profile.micro_batches.total,
                 "micro_batches.executed",
                 "more micro-batches were run than the plan has");
}

void check_program(const RankProfile& profile, Claims& claims) {
  const std::vector<CommunicatorRecord>& all = profile.program->communicators;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string path = fmt::format("program.communicators[{}]", i);
    claims.at_most(
        all[i].size, profile.world_size, path + ".size", "a communicator is larger than the world");
    claims.at_most(
        all[i].rank, all[i].size - 1, path + ".rank", "the process is no member of its own group");
  }
}

void check_work(const TraceWork& work,
                const std::string& path,
                const std::vector<CommunicatorRecord>& communicators,
                Claims& claims) {
  const bool communicates = work.kind == WorkKind::kCollective || work.kind == WorkKind::kMessages;
  claims.require(communicates == (work.communicator >= 0) &&
                     work.communicator < static_cast<int64_t>(communicators.size()),
                 path + ".communicator",
                 "no such communicator",
                 std::to_string(work.communicator));
  if (work.kind == WorkKind::kCollective) {
    claims.require(value_named<CollectiveKind>(work.name).has_value(),
                   path + ".name",
                   "no such collective",
                   work.name);
  }
  if (work.kind == WorkKind::kProduct) {
    constexpr std::size_t kOfProduct = 4, kOfConvolution = 5;
    const bool is_convolution = convolution_pass(work.name).has_value();
    claims.require(work.shapes.size() == (is_convolution ? 2 : 1) &&
                       work.shapes[0].size() == kOfProduct &&
                       (!is_convolution || work.shapes[1].size() == kOfConvolution),
                   path + ".shapes",
                   is_convolution ? "a convolution has a product's sizes and five of its own"
                                  : "a product has a batch, m, n and k",
                   fmt::format("{} lists", work.shapes.size()));
  }
  if (!communicates || work.communicator >= static_cast<int64_t>(communicators.size())) return;
  for (const TraceMessage& message : work.messages) {
    claims.at_most(message.peer,
                   communicators[static_cast<std::size_t>(work.communicator)].size - 1,
                   path + ".messages",
                   "a message goes to no member of its communicator");
  }
}

struct Column {
  const char* name;
  const std::vector<int64_t>& values;
  int64_t low;
  int64_t high;
};

/// Columns of events that stand at `path`, as long as the first, with values that events can have.
void check_columns(const std::vector<Column>& columns, const std::string& path, Claims& claims) {
  for (const Column& column : columns) {
    const std::string of_column = fmt::format("{}.{}", path, column.name);
    claims.equal(static_cast<int64_t>(column.values.size()),
                 static_cast<int64_t>(columns.front().values.size()),
                 of_column,
                 "the columns of the events have different lengths");
    const auto wrong = std::find_if(column.values.begin(), column.values.end(), [&](int64_t value) {
      return value < column.low || value > column.high;
    });
    if (wrong == column.values.end()) continue;
    claims.require(false, of_column, "no event has such a value", std::to_string(*wrong));
  }
}

/// Events refer to operators, collectives and records that are there.
void check_order(const RankProfile& profile, Claims& claims) {
  const OrderEvents& events = profile.order->events;
  constexpr int64_t kMost = INT64_MAX;
  check_columns(
      {{"kind", events.kind, 0, static_cast<int64_t>(OrderKind::kPiece)},
       {"stream", events.stream, kMainStream, INT32_MAX},
       {"item", events.item, -kMost, kMost},
       {"module", events.module, 0, static_cast<int64_t>(profile.order->modules.size()) - 1},
       {"chunk", events.chunk, -1, INT32_MAX},
       {"direction", events.direction, 0, static_cast<int64_t>(Direction::kOptimizerStep)},
       {"allocated_bytes", events.allocated_bytes, 0, kMost},
       {"operators", events.operators, 0, kMost}},
      "order.events",
      claims);
  int64_t records = 0;
  for (std::size_t i = 0; i < std::min(events.kind.size(), events.item.size()); ++i) {
    const std::string path = fmt::format("order.events.item[{}]", i);
    const int64_t item = events.item[i];
    const auto is_in = [&](const auto& list) {
      claims.require(item >= 0 && item < static_cast<int64_t>(list.size()),
                     path,
                     "the profile has no such record",
                     std::to_string(item));
    };
    switch (static_cast<OrderKind>(events.kind[i])) {
      case OrderKind::kOperator:
        is_in(profile.operators);
        break;
      case OrderKind::kCollective:
        is_in(profile.collectives);
        break;
      case OrderKind::kRecord:
        claims.equal(item, records++, path, "records are not numbered in their order");
        break;
      case OrderKind::kWait:
        claims.at_most(item, records - 1, path, "a stream waits for a record that comes after it");
        break;
      case OrderKind::kPiece:
        claims.require(item >= 0, path, "pieces are numbered from 0", std::to_string(item));
        break;
    }
  }
  claims.equal(
      profile.order->records, records, "order.records", "the events record another number");
}

/// Events refer to works, modules and records that are there.
void check_events(const Trace& trace, Claims& claims) {
  const TraceEvents& events = trace.events;
  constexpr int64_t kMost = INT64_MAX;
  check_columns(
      {{"kind", events.kind, 0, static_cast<int64_t>(TraceEventKind::kHostUpdates)},
       {"stream", events.stream, -1, INT32_MAX},
       {"item", events.item, -kMost, kMost},
       {"module", events.module, 0, static_cast<int64_t>(trace.modules.size()) - 1},
       {"direction", events.direction, 0, static_cast<int64_t>(Direction::kOptimizerStep)},
       {"issue", events.issue, 0, static_cast<int64_t>(HostIssue::kUnfusedUpdate)},
       {"operators", events.operators, 0, kMost}},
      "trace.events",
      claims);
  int64_t records = 0;
  for (std::size_t i = 0; i < std::min(events.kind.size(), events.item.size()); ++i) {
    const auto kind = static_cast<TraceEventKind>(events.kind[i]);
    const std::string path = fmt::format("trace.events.item[{}]", i);
    const int64_t item = events.item[i];
    if (kind == TraceEventKind::kLaunch) {
      claims.require(item >= 0 && item < static_cast<int64_t>(trace.works.size()),
                     path,
                     "no such work",
                     std::to_string(item));
    }
    if (kind == TraceEventKind::kHostUpdates) {
      claims.require(item >= 0, path, "less than no bytes", std::to_string(item));
    }
    if (kind == TraceEventKind::kRecord) {
      claims.equal(item, records++, path, "records are not numbered in their order");
    }
    if (kind == TraceEventKind::kStreamWait || kind == TraceEventKind::kHostWaitRecord) {
      claims.at_most(item, records - 1, path, "an event waits for one that comes after it");
    }
  }
  claims.equal(trace.records, records, "trace.records", "the events record another number");
}

void check_evaluations(const Trace& trace, Claims& claims) {
  int64_t end = 0;
  for (std::size_t i = 0; i < trace.evaluations.size(); ++i) {
    const TraceCall& call = trace.evaluations[i];
    const std::string path = fmt::format("trace.evaluations[{}]", i);
    claims.at_most(end, call.begin, path + ".begin", "a call begins before the one before it ends");
    claims.at_most(call.begin, call.end, path + ".end", "a call ends before it begins");
    end = call.end;
  }
  claims.at_most(end,
                 static_cast<int64_t>(trace.events.kind.size()),
                 "trace.evaluations",
                 "a call ends behind the last event");
}

void check_trace(const RankProfile& profile, Claims& claims) {
  const std::vector<CommunicatorRecord> none;
  const auto& communicators = profile.program ? profile.program->communicators : none;
  for (std::size_t i = 0; i < profile.trace->works.size(); ++i) {
    check_work(profile.trace->works[i], fmt::format("trace.works[{}]", i), communicators, claims);
  }
  check_events(*profile.trace, claims);
  check_evaluations(*profile.trace, claims);
}

}  // namespace

void report_contradictions(const PeakRecord& peak, const std::string& path, FieldReader& reader) {
  Claims claims(reader);
  claims.within_reserved({peak.allocated_bytes, peak.reserved_bytes}, path);
  if (!peak.categories) return;
  claims.equal(peak.categories->sum(),
               peak.allocated_bytes,
               path + ".categories",
               "the categories do not add up to the allocated peak");
}

void report_contradictions(const RankProfile& profile, FieldReader& reader) {
  Claims claims(reader);
  claims.at_most(profile.rank, profile.world_size - 1, "rank", "the rank is not in its world");
  report_contradictions(profile.peak, "peak", reader);
  check_phases(profile, claims);
  check_device(profile, claims);
  if (profile.program) {
    check_program(profile, claims);
  } else {
    check_shard(profile, claims);
  }
  if (profile.order) check_order(profile, claims);
  if (profile.trace) check_trace(profile, claims);
}

}  // namespace estimator
