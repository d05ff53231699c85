// The place of each rank, in Megatron-LM's default order: tensor ranks are next to each other, then
// come context, data, and outermost the pipeline stages; or with use_tp_pp_dp_mapping context,
// pipeline stages, and outermost data. Experts use the same ranks in another order: inside one
// stage, the ranks are numbered by expert-tensor, then expert, then expert-data.
//
// Groups are described by strides, so their description does not grow with the world.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "estimator/base/option.h"
#include "estimator/plan/plan.h"

namespace estimator {

struct RankCoordinate {
  int64_t tensor = 0;
  int64_t context = 0;
  int64_t data = 0;
  int64_t pipeline = 0;
  int64_t expert = 0;       ///< index in the expert group
  int64_t expert_data = 0;  ///< index among the replicas of the same experts
  int64_t expert_tensor = 0;

  bool operator==(const RankCoordinate&) const = default;
};

template <class Visitor>
void visit_fields(Visitor& visit, RankCoordinate& coordinate) {
  visit("tp", coordinate.tensor, {"tensor", kCount});
  visit("cp", coordinate.context, {"context", kCount});
  visit("ep", coordinate.expert, {"expert", kCount});
  visit("dp", coordinate.data, {"data", kCount});
  visit("pp", coordinate.pipeline, {"pipeline stage", kCount});
}

/// A group of ranks that talk to each other.
enum class GroupKind {
  kWorld,
  kTensor,
  kContext,
  kData,
  kPipeline,
  kDataContext,  ///< reduces gradients of dense parameters, holds their ZeRO shards; of one
                 ///< instance of the distributed optimizer
  kTensorContext,
  kModel,      ///< tensor x pipeline: one replica of the model (context and data fixed)
  kEmbedding,  ///< first and last stage, for tied embeddings
  kExpert,
  kExpertData,    ///< as kDataContext, of experts
  kExpertTensor,  ///< ranks that share the same experts by tensor parallelism
  kExpertModel,   ///< expert-tensor x expert: all experts of a layer
  kInstances,     ///< ranks that hold the same ZeRO shard, one of each instance of the optimizer
  kStage,         ///< tensor x context x data: all ranks of one pipeline stage
};
constexpr std::array<EnumName<GroupKind>, 15> enum_names(GroupKind) {
  return {{{GroupKind::kWorld, "world"},
           {GroupKind::kTensor, "tensor"},
           {GroupKind::kContext, "context"},
           {GroupKind::kData, "data"},
           {GroupKind::kPipeline, "pipeline"},
           {GroupKind::kDataContext, "data_context"},
           {GroupKind::kTensorContext, "tensor_context"},
           {GroupKind::kModel, "model"},
           {GroupKind::kEmbedding, "embedding"},
           {GroupKind::kExpert, "expert"},
           {GroupKind::kExpertData, "expert_data"},
           {GroupKind::kExpertTensor, "expert_tensor"},
           {GroupKind::kExpertModel, "expert_model"},
           {GroupKind::kInstances, "instances"},
           {GroupKind::kStage, "stage"}}};
}

/// Whether the ranks of such a group hold the same parameters (of experts or of the rest). Such
/// ranks reduce gradients and gather the parameters that each of them updated.
constexpr bool is_of_replicas(GroupKind kind) {
  return kind == GroupKind::kData || kind == GroupKind::kDataContext ||
         kind == GroupKind::kExpertData || kind == GroupKind::kInstances;
}

/// `count` ranks, each `stride` after the one before.
struct RankSpan {
  int64_t count = 1;
  int64_t stride = 1;
  int64_t period = 0;  ///< from a group of the kind to the next; 0: stride * count

  int64_t distance() const { return period > 0 ? period : stride * count; }
  bool operator==(const RankSpan&) const = default;
};

/// A group of ranks: its members are first + sum(index_i * stride_i), in ascending order, where the
/// index of the first span changes fastest.
struct RankGroup {
  GroupKind kind = GroupKind::kWorld;
  int64_t first = 0;
  std::vector<RankSpan> spans;
  /// Whether `first` says where these ranks lie. Else the group stands for all groups of its kind.
  bool place_is_known = false;

  int64_t size() const;
  /// Global rank of member `index` (0 <= index < size()).
  int64_t member(int64_t index) const;
  /// The member index of a global rank, or -1 when it is not a member.
  int64_t index_of(int64_t rank) const;
  bool operator==(const RankGroup&) const = default;
};

class ParallelLayout {
 public:
  explicit ParallelLayout(const ParallelConfig& parallelism);

  int64_t world_size() const { return tensor_ * context_ * data_ * pipeline_; }
  RankCoordinate coordinate(int64_t rank) const;
  /// The inverse of coordinate(). It uses only tensor, context, data and pipeline.
  int64_t rank(const RankCoordinate& coordinate) const;
  /// The group of `kind` that has `rank` as a member. For kEmbedding it is the group of the rank's
  /// pipeline, of which ranks of middle stages are no members.
  RankGroup group(GroupKind kind, int64_t rank) const;

 private:
  int64_t tensor_, context_, data_, pipeline_, expert_, expert_tensor_, instances_;
  int64_t data_stride_, pipeline_stride_;
};

}  // namespace estimator
