#include "sim/verify/verification.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace sim {
namespace {

/// The ranks that see the same part of the model and different samples: the last stage's, by tensor
/// rank.
using LossGroups = std::map<int64_t, std::vector<RankVerification*>>;

LossGroups ranks_with_losses(Verification& verification) {
  LossGroups groups;
  for (RankVerification& rank : verification.ranks) {
    if (!rank.losses.empty()) groups[rank.coordinate.tensor].push_back(&rank);
  }
  return groups;
}

void compare_loss(std::size_t iteration,
                  double expected,
                  double allowed,
                  const std::vector<RankVerification*>& ranks) {
  double sum = 0;
  for (const RankVerification* rank : ranks) sum += rank->losses.at(iteration);
  const double found = sum / static_cast<double>(ranks.size());
  RankVerification& first = *ranks.front();
  ++first.tensors;
  first.largest_error = std::max(first.largest_error, std::abs(found - expected) / allowed);
  if (std::abs(found - expected) <= allowed) return;
  first.differences.add(
      {.rank = first.rank,
       .claim = Claim::kTensors,
       .where = fmt::format("loss in iteration_{}, mean of {} data ranks", iteration, ranks.size()),
       .expected = fmt::format("{:.9g}", expected),
       .found = fmt::format("{:.9g}, allowed difference {:.3g}", found, allowed)});
}

}  // namespace

void judge(Verification& verification) {
  for (const auto& [tensor, ranks] : ranks_with_losses(verification)) {
    for (std::size_t i = 0; i < verification.losses.size(); ++i) {
      compare_loss(i, verification.losses[i], verification.allowed_loss_differences.at(i), ranks);
    }
  }
  verification.equal = std::all_of(verification.ranks.begin(),
                                   verification.ranks.end(),
                                   [](const auto& rank) { return rank.differences.count == 0; });
}

}  // namespace sim
