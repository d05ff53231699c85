// How many tokens a program trains on in a step, found in the traces of its ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimator/profile/rank_profile.h"

namespace estimator {

struct FoundTokens {
  int64_t per_rank = 0;  ///< of all micro-batches of a step
  int64_t rank = 0;      ///< where they were seen
  int64_t replicas = 1;  ///< ranks or groups of ranks that have tokens of their own
  std::string how;       ///< for the report

  int64_t per_step() const { return per_rank * replicas; }
};

/// Whether the program has a world of several ranks and joined none of them: each trains alone.
bool trains_alone(const RankProfile& rank);
/// Ranks that train together: those of the world, or 1 if this one trains alone.
int64_t ranks_together(const RankProfile& rank);

/// The tokens of a rank are the integer inputs of its embedding, which the embedding's backward
/// names, or else the labels of its loss, or else the integers that its outermost module was given,
/// unless it looks up bags of them (recommenders).
/// If both of these are far more, the embedding is another one (prompt tuning), and the fewer
/// count. Ranks share their tokens with the stages of their pipeline (who sends messages without
/// receiving as many) and with their tensor ranks (who sum activations in forward, as no other axis
/// does, or get the tokens by a broadcast in their group). All others have tokens of their own; of
/// a rank that trains alone its own are all. `ranks` have traces and can be replayed together.
/// Empty if no rank shows its tokens, or if the groups do not divide the world.
std::optional<FoundTokens> found_tokens(const std::vector<const RankProfile*>& ranks);

}  // namespace estimator
