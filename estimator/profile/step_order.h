// In which order, and on which streams, a rank of a plan did what its profile counts.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "estimator/base/enum_names.h"
#include "estimator/base/option.h"
#include "estimator/profile/trace.h"

namespace estimator {

enum class Direction;  // rank_profile.h

enum class OrderKind : int64_t {
  kOperator,    ///< the stream is given the operator number `item` of the profile
  kCollective,  ///< the stream is given the collective number `item` of the profile
  kRecord,      ///< a point in the stream's work is recorded
  kWait,        ///< the stream waits for record `item`
  kPiece,       ///< piece number `item` of its chunk begins: see schedule/piece_order.h
};

/// The stream on which a rank computes.
inline constexpr int64_t kMainStream = 0;

struct OrderEvent {
  OrderKind kind = OrderKind::kOperator;
  int64_t stream = kMainStream;
  int64_t item = 0;
  int64_t module = 0;
  int64_t chunk = 0;
  Direction direction{};
  int64_t allocated_bytes = 0;
  int64_t operators = 0;
};

/// The events as columns of equal length, in the order of the host, autograd's threads included.
struct OrderEvents {
  std::vector<int64_t> kind;
  std::vector<int64_t> stream;
  std::vector<int64_t> item;
  std::vector<int64_t> module;
  std::vector<int64_t> chunk;
  std::vector<int64_t> direction;
  std::vector<int64_t> allocated_bytes;
  std::vector<int64_t> operators;

  void add(const OrderEvent& event) {
    kind.push_back(static_cast<int64_t>(event.kind));
    stream.push_back(event.stream);
    item.push_back(event.item);
    module.push_back(event.module);
    chunk.push_back(event.chunk);
    direction.push_back(static_cast<int64_t>(event.direction));
    allocated_bytes.push_back(event.allocated_bytes);
    operators.push_back(event.operators);
  }
};
template <class Visitor>
void visit_fields(Visitor& visit, OrderEvents& events) {
  visit(
      "kind",
      events.kind,
      {"0: an operator, 1: a collective, 2: a point is recorded, 3: the stream waits for a record, "
       "4: a piece of the chunk begins",
       kCount});
  visit("stream", events.stream, {"0: the one on which the rank computes", kCount});
  visit(
      "item",
      events.item,
      "place in `operators` or `collectives`, or the number of a record: those of the micro-batch "
      "before are below 0; or the number of a piece");
  visit("module", events.module, {"place in `modules`", kCount});
  visit("chunk", events.chunk, {"model chunk of the stage, or -1", kMemberOrNone});
  visit("direction",
        events.direction,
        {"0: forward, 1: recompute, 2: backward, 3: between, 4: optimizer step", kCount});
  visit("allocated_bytes", events.allocated_bytes, {"on the device then, or 0: unknown", kBytes});
  visit(
      "operators",
      events.operators,
      {"of PyTorch and nodes of autograd that the thread began since its event before, also those "
       "within others and those that ask for no work, without views and what is in a framework's "
       "kernel",
       kCount});
}

/// What was allocated on the device as a forward or backward of the last micro-batch began, and as
/// it ended.
struct PartMemory {
  int64_t chunk = 0;
  bool is_forward = false;
  int64_t begin_bytes = 0;
  int64_t end_bytes = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, PartMemory& part) {
  visit("chunk", part.chunk, {"model chunk of the stage", kMemberOrNone});
  visit("is_forward", part.is_forward, "else it is the backward, with recompute");
  visit("begin_bytes", part.begin_bytes, {"allocated as it began", kBytes});
  visit("end_bytes", part.end_bytes, {"allocated as it ended", kBytes});
}

/// One micro-batch of each model chunk, the last that was executed, and what happens once in the
/// iteration. Waits for what is not in it are left out. What happened once in another micro-batch
/// (the gathers of parameters in the first forward) stands at the same place of this one.
///
/// An asynchronous collective waits for the stream that asked for it and runs on a stream of its
/// group, as ProcessGroupNCCL's do (sends and receives each on one of their own); any other runs on
/// the stream that asked for it.
struct StepOrder {
  int64_t records = 0;
  std::vector<std::string> modules;
  OrderEvents events;
  std::vector<PartMemory> memory;
  std::vector<TraceRange> ranges;  ///< ascending by event
};
template <class Visitor>
void visit_fields(Visitor& visit, StepOrder& order) {
  visit("records", order.records, {"points that were recorded", kCount});
  visit("modules", order.modules, "paths of modules");
  visit("events", order.events, "in the order in which the host asked for them");
  visit("memory", order.memory, "of a forward and a backward of each chunk");
  visit("ranges", order.ranges, "that the framework's Python begins");
}

}  // namespace estimator
