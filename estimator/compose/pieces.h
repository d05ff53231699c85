// Pieces from which the ranks of many layouts are composed.
//
// Layouts that differ only in their pipeline, in their data ranks and in the global batch run the
// same layers: they are one family. Of each family a few small stages are executed: the first, the
// last and two middle ones of a pipeline of four, each with few and with more layers, and the first
// one of a pipeline of two. (Of layouts without a pipeline the one stage is executed as it is, with
// its own micro-batches up to eight.)
// What a stage with any other number of layers and of micro-batches in flight holds, and how long
// it takes, follows from these (composed_stage.h).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "estimator/base/enum_names.h"
#include "estimator/plan/plan.h"
#include "estimator/profile/rank_profile.h"
#include "estimator/step/stage_time.h"

namespace estimator {

/// What a stage has besides layers: embedding and head, the embedding, nothing, or the head. Dense
/// layers before layers with experts belong to the place of the embedding, and predictions of more
/// tokens to that of the head.
enum class StagePlace { kOnly, kFirst, kMiddle, kLast };

/// The place of chunk or stage `piece` of `pieces` in a row.
StagePlace place_of(int64_t piece, int64_t pieces);

/// Numbers of layers of the executed stages of a pipeline. The allocated peak is a line through
/// them from two layers on; what the allocator loses beside it is not, and wants more layers.
inline constexpr std::array<int64_t, 2> kPieceLayers = {2, 8};
/// Where a stage of so many layers lies on this line: 0 at the small piece, 1 at the large one.
double share_of_way(double layers);

/// Of pipelines: more than are in flight. A single stage has its own, up to so many.
inline constexpr int64_t kMicroBatchesOfPieces = 8;

/// A stage that is executed.
struct PieceRun {
  StagePlace place = StagePlace::kOnly;
  int64_t layers = 0;     ///< besides what its place has
  int64_t in_flight = 1;  ///< micro-batches
  Plan plan;
  int64_t rank = 0;
};

/// Whether plans with other data ranks need other pieces: a plan of one stage is executed as it is;
/// under ZeRO stages 2 and 3 data ranks exchange in each micro-batch; and PyTorch's buckets of
/// gradients are not there where a rank has nobody to reduce with. What else data ranks share,
/// experts among them, is divided among more ranks in proportion to the data ranks.
bool data_ranks_change_pieces(const Plan& plan);

/// Equal for plans of one family.
std::string family_of(const Plan& plan);

/// What keeps plans like this one from being composed, in words; "" if nothing does: layers with
/// and without experts that are mixed, full recompute of some layers or of several as one, a
/// schedule other than 1F1B, an offloaded optimizer.
std::string obstacle_to_composition(const Plan& plan);

/// What keeps this layout from being composed, though others of its plan can be: pieces of its
/// pipeline that hold other layers than the executed ones do. "" if nothing does.
std::string obstacle_of_layout(const Plan& plan);

/// The stages to execute for the family of `plan`; only its own if it has one stage.
std::vector<PieceRun> piece_runs(const Plan& plan);
int64_t number_of_pieces(const Plan& plan);

/// Two middle stages of few layers, with more and with fewer forwards in flight: what a layer of
/// the plan takes. Also for a plan of one stage. Empty where there is no such pipeline, or so few
/// layers are not like all of them.
std::vector<PieceRun> probe_runs(const Plan& plan);

/// Makes `records`, which are empty or were made of the same executed stage, those of a stage of
/// `plan`, another of its family, at this stage of its pipeline: groups have the sizes that they
/// have there, and what the data ranks share is shared among as many as there are.
void make_stage_of(const Plan& plan,
                   int64_t stage,
                   const PieceRun& run,
                   const RankProfile& profile,
                   StageRecords& records);

}  // namespace estimator
