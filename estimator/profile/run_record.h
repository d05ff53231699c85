// What is compared between two runs of a rank: the collectives in order, and the memory of the
// phases.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "estimator/profile/collective_call.h"
#include "estimator/profile/rank_profile.h"

namespace estimator {

/// A collective and the global ranks of its group.
struct GroupCall {
  CollectiveCall call;
  std::vector<int64_t> members;
  bool operator==(const GroupCall&) const = default;
};

using GroupCallSink = std::function<void(const GroupCall&)>;

/// "all_reduce of 1,024 bytes of Float over the tensor group (ranks 0, 1)"
std::string to_text(const GroupCall& call);

struct PhaseCall {
  std::string phase;  ///< as in PhaseRecord
  GroupCall made;
  bool operator==(const PhaseCall&) const = default;
};

struct RunRecord {
  std::vector<PhaseCall> calls;
  std::vector<PhaseRecord> phases;
};

}  // namespace estimator
