// The findings of `onerank verify`, as JSON: real ranks compared with the stub and with the whole
// model.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "estimator/base/document_head.h"
#include "estimator/base/json_value.h"
#include "estimator/profile/rank_profile.h"

namespace sim {

enum class Claim { kCollectives, kMemory, kTensors };
constexpr std::array<estimator::EnumName<Claim>, 3> enum_names(Claim) {
  return {{{Claim::kCollectives, "collectives"},
           {Claim::kMemory, "memory"},
           {Claim::kTensors, "tensors"}}};
}

/// One difference between a real rank and what it is compared with.
struct Difference {
  int64_t rank = 0;
  Claim claim = Claim::kCollectives;
  std::string where;     ///< the call, the phase or the tensor
  std::string expected;  ///< what the stub, or the whole model, has
  std::string found;     ///< what the real rank has
};
template <class Visitor>
void visit_fields(Visitor& visit, Difference& difference) {
  visit("rank", difference.rank, "of the real rank");
  visit("claim", difference.claim, "collectives, memory or tensors");
  visit("where", difference.where, "the call, the phase or the tensor");
  visit("expected", difference.expected, "what the stub or the whole model has");
  visit("found", difference.found, "what the real rank has");
}

/// The differences of one rank. All are counted, but only the first ones are kept.
struct DifferenceList {
  static constexpr std::size_t kMostKept = 50;

  int64_t count = 0;
  std::vector<Difference> kept;

  void add(Difference difference) {
    ++count;
    if (kept.size() < kMostKept) kept.push_back(std::move(difference));
  }
};
template <class Visitor>
void visit_fields(Visitor& visit, DifferenceList& list) {
  visit("count", list.count, "of all");
  visit("kept", list.kept, "the first ones");
}

/// What was compared on one rank, and what differs.
struct RankVerification {
  int64_t rank = 0;
  estimator::RankCoordinate coordinate;
  int64_t collectives = 0;           ///< calls of both iterations
  int64_t peak_allocated_bytes = 0;  ///< of the real rank
  int64_t tensors = 0;               ///< gradients, parameters and losses of both iterations
  double largest_error = 0;    ///< largest error of a tensor / what is allowed; 1 is the limit
  std::vector<double> losses;  ///< of each iteration; empty except on the last stage
  DifferenceList differences;
};
template <class Visitor>
void visit_fields(Visitor& visit, RankVerification& rank) {
  visit("rank", rank.rank, "of the real world");
  visit("coordinate", rank.coordinate, "its place along each axis");
  visit("collectives", rank.collectives, "calls compared, of both iterations");
  visit("peak_allocated_bytes", rank.peak_allocated_bytes, "largest of the real rank's phases");
  visit("tensors", rank.tensors, "gradients and parameters compared, of both iterations");
  visit("largest_error", rank.largest_error, "of the tensors, as a part of what is allowed");
  visit("losses", rank.losses, "of each iteration, on the last stage");
  visit("differences", rank.differences, "what differs");
}

inline constexpr int64_t kVerificationSchemaVersion = 1;

struct Verification {
  estimator::DocumentHead head{kVerificationSchemaVersion, "verification"};
  estimator::ToolVersion tool;
  estimator::JsonValue plan;  ///< as it was run: without dropout
  bool equal = false;
  double tolerance = 0;        ///< of the tensors, see tolerance.h
  std::vector<double> losses;  ///< of the whole model, of each iteration
  std::vector<double> allowed_loss_differences;
  std::vector<RankVerification> ranks;
};
template <class Visitor>
void visit_fields(Visitor& visit, Verification& verification) {
  visit_head(visit, verification.head);
  visit("tool", verification.tool, "who wrote it");
  visit("plan", verification.plan, "the resolved plan, as it was run");
  visit("equal", verification.equal, "whether nothing differs");
  visit("tolerance",
        verification.tolerance,
        "allowed difference of a gradient relative to its norm; in a 16-bit type it follows from "
        "the rounding of the whole model");
  visit("losses", verification.losses, "of the whole model, of each iteration");
  visit("allowed_loss_differences",
        verification.allowed_loss_differences,
        "what a sharded loss may differ by in each iteration");
  visit("ranks", verification.ranks, "what was compared on each");
}

/// The verdict over the findings of all ranks. Compares the losses: for each tensor rank, the mean
/// over the data ranks of the last stage with the loss of the whole model. Then sets `equal`, which
/// says whether nothing differs. Reads the losses, the allowed differences of the losses, and the
/// ranks.
void judge(Verification& verification);

}  // namespace sim
