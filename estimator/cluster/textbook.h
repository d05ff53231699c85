// What the closed formulas of the literature say of a rank's memory, beside what was executed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimator/cluster/cluster_estimate.h"
#include "estimator/plan/plan.h"
#include "estimator/profile/rank_profile.h"

namespace estimator {

/// Scores of one layer and micro-batch on a rank, a b s^2 / (t c). Each takes 5 bytes: its softmax
/// and its dropout in 16 bits, and the dropout's mask (Korthikanti et al. 2022, table 2); without
/// dropout 2.
double score_count(const Plan& plan);

/// Whether layers keep their scores for backward.
bool keeps_scores(const Plan& plan);

/// The formulas for the memory of `rank`, whose profile is `profile`. All of them are written for
/// even stages and for one copy of each tensor:
///
///   weights, gradients, optimizer   bytes of each parameter (Rajbhandari et al. 2020, ZeRO, 3.1;
///                                   of 8-bit AdamW, Dettmers et al. 2022) times P / (t p), and
///                                   divided among the ranks that the ZeRO stage names (ZeRO, 5).
///                                   Experts are divided by their own degrees.
///   12 l h^2 + v h                  the parameters, from the shape alone (Narayanan et al. 2021,
///                                   equation 2 without its small terms)
///   activations of a layer          s b h (34 + 5 a s / h), and with tensor and sequence
///                                   parallelism and recompute (Korthikanti et al. 2022, table 2).
///                                   Their layer is GPT's: an MLP of four times the width, as many
///                                   key heads as heads, dropout, and 16 bits.
///   micro-batches in flight         Korthikanti et al. 2022, 4.2.3; of interleaved stages,
///                                   Narayanan et al. 2021, 2.2
///   logits                          4 s b v / t (Korthikanti et al. 2022, 4.3)
///   keys and values                 Pope et al. 2022; of MLA, DeepSeek-AI 2024 (DeepSeek-V2,
///                                   2.1.4). Only with `decode_tokens`, for so many tokens of a
///                                   micro-batch.
///   1.2 x                           EleutherAI, Transformer Math 101, 2023
std::vector<TextbookTerm> textbook_terms(const Plan& plan,
                                         const RankClassEstimate& rank,
                                         const RankProfile& profile,
                                         std::optional<int64_t> decode_tokens);

}  // namespace estimator
