// The documents of --json that are not defined in other headers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimator/base/document.h"
#include "estimator/base/error_document.h"
#include "estimator/cluster/cluster_estimate.h"
#include "estimator/cluster/memory_health.h"
#include "estimator/profile/peak_snapshot.h"

namespace sim {

/// The document of `check`: a head, followed by the keys of the verdict.
struct VerdictDocument {
  estimator::DocumentHead head{1, "verdict"};
  estimator::Verdict verdict;
  estimator::MemoryHealth health;
  int64_t exit_code = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, VerdictDocument& document) {
  visit_head(visit, document.head);
  visit_fields(visit, document.verdict);
  visit("health", document.health, "how full the GPU is");
  visit("exit_code",
        document.exit_code,
        "0: it passes, 1: it does not fit, or is fuller than --health allows");
}

/// One of several plans that were checked.
struct CheckedPlan {
  std::string plan;
  int64_t exit_code = 0;
  std::optional<estimator::Verdict> verdict;
  std::optional<estimator::MemoryHealth> health;
  std::vector<estimator::Problem> errors;
};
template <class Visitor>
void visit_fields(Visitor& visit, CheckedPlan& checked) {
  visit("plan", checked.plan, "its file");
  visit("exit_code", checked.exit_code, "if it were checked alone");
  visit("verdict", checked.verdict, "left out where there is an error");
  visit("health", checked.health, "the same");
  visit("errors", checked.errors, "because of which there is no verdict");
}

/// The document of `check` for several plans.
struct CheckedPlans {
  estimator::DocumentHead head{1, "verdicts"};
  std::vector<CheckedPlan> plans;
};
template <class Visitor>
void visit_fields(Visitor& visit, CheckedPlans& checked) {
  visit_head(visit, checked.head);
  visit("plans", checked.plans, "in the order of the command line");
}

/// What the worst rank needs under one setting of PyTorch's allocator.
struct AllocatorTrial {
  std::string setting;
  bool is_plans = false;
  int64_t worst_rank = 0;
  int64_t allocated_peak_bytes = 0;
  int64_t reserved_peak_bytes = 0;
  int64_t total_bytes = 0;
  int64_t saved_bytes = 0;
  estimator::AllocatorRecord allocator;
  estimator::Fit outcome = estimator::Fit::kDoesNotFit;
};
template <class Visitor>
void visit_fields(Visitor& visit, AllocatorTrial& trial) {
  bool fits = trial.outcome == estimator::Fit::kFits;
  visit("setting", trial.setting, "PYTORCH_CUDA_ALLOC_CONF");
  visit("is_plans", trial.is_plans, "whether this is the plan's own setting");
  visit("worst_rank", trial.worst_rank, "the rank that needs most");
  visit("allocated_peak_bytes", trial.allocated_peak_bytes, "in tensors");
  visit("reserved_peak_bytes", trial.reserved_peak_bytes, "taken by the allocator");
  visit("total_bytes", trial.total_bytes, "with context and communicators");
  visit("saved_bytes", trial.saved_bytes, "against the plan's setting; negative: it needs more");
  visit("allocator", trial.allocator, "what the allocator says of itself");
  visit("fits", fits, "every rank fits, also with the upper end of what it may need");
  visit("outcome", trial.outcome, "the verdict");
}

struct AllocatorComparison {
  estimator::DocumentHead head{1, "allocator_comparison"};
  std::vector<AllocatorTrial> settings;
};
template <class Visitor>
void visit_fields(Visitor& visit, AllocatorComparison& comparison) {
  visit_head(visit, comparison.head);
  visit("settings", comparison.settings, "each was run; the plan's first");
}

/// A group of allocations of a peak that have something in common.
struct MemoryGroup {
  std::string name;
  int64_t bytes = 0;
  int64_t requested_bytes = 0;
  int64_t allocations = 0;
};
template <class Visitor>
void visit_fields(Visitor& visit, MemoryGroup& group) {
  visit("name", group.name, "what they have in common");
  visit("bytes", group.bytes, "the allocator's blocks");
  visit("requested_bytes", group.requested_bytes, "asked for, before rounding");
  visit("allocations", group.allocations, "how many");
}

struct MemoryGroups {
  estimator::DocumentHead head{1, "memory_groups"};
  std::string by;
  estimator::PeakSnapshotHeader header;
  std::vector<MemoryGroup> groups;
};
template <class Visitor>
void visit_fields(Visitor& visit, MemoryGroups& memory) {
  visit_head(visit, memory.head);
  visit("by", memory.by, "by what they are grouped");
  visit("header", memory.header, "of the snapshot");
  visit("groups", memory.groups, "largest first");
}

}  // namespace sim
