// An operator of PyTorch that runs, the kernels that it launched, and what each of them did.
#pragma once

#include <ATen/record_function.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "estimator/profile/trace.h"
#include "sim/tracking/operator_call.h"

namespace sim {

/// A kernel that an operator launched, before it is known what the operator did.
struct TracedLaunch {
  std::size_t event = 0;
  int stream = 0;
  /// How often the trace had forgotten its events before this one; -1: it is not recorded.
  int64_t forgotten = 0;
  uint32_t call = 0;      ///< its number for profilers; see DeviceTrace
  uint64_t captured = 0;  ///< number of the work in a graph, which has no event yet; 0: none
  std::string name;
  uint64_t threads = 0;
};

struct TracedOperator {
  OperatorCall call;
  std::vector<TracedLaunch> launches;
  bool multiplied = false;  ///< by a library, which has its FLOPs
  int64_t peer_bytes = 0;   ///< to and from memory of other ranks
  bool has_mask = false;    ///< of attention
  bool has_dropout = false;
};

/// Of attention: whether a tensor is added to its scores, and whether weights are dropped out.
void read_extras(c10::ArrayRef<c10::IValue> inputs, TracedOperator& running);

/// What the kernels of an operator that has ended did, in the order of its launches. What it moved
/// is divided by the kernels' threads; its FLOPs go to the kernels that multiply.
std::vector<estimator::TraceWork> works_of(const TracedOperator& ended);

}  // namespace sim
