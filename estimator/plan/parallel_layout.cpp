#include "estimator/plan/parallel_layout.h"

#include <algorithm>
#include <stdexcept>

namespace estimator {

int64_t RankGroup::size() const {
  int64_t size = 1;
  for (const RankSpan& span : spans) size *= span.count;
  return size;
}

int64_t RankGroup::member(int64_t index) const {
  if (index < 0 || index >= size()) throw std::logic_error("RankGroup::member: index out of range");
  int64_t rank = first;
  for (const RankSpan& span : spans) {
    rank += index % span.count * span.stride;
    index /= span.count;
  }
  return rank;
}

int64_t RankGroup::index_of(int64_t rank) const {
  // Strides grow from span to span and each covers the spans before it, so the largest divides
  // first.
  int64_t left = rank - first;
  if (left < 0) return -1;
  int64_t index = 0;
  for (auto span = spans.rbegin(); span != spans.rend(); ++span) {
    const int64_t step = left / span->stride;
    if (step >= span->count) return -1;
    left -= step * span->stride;
    index = index * span->count + step;
  }
  return left == 0 ? index : -1;
}

ParallelLayout::ParallelLayout(const ParallelConfig& parallelism)
    : tensor_(parallelism.tensor),
      context_(parallelism.context),
      data_(parallelism.data),
      pipeline_(parallelism.pipeline),
      expert_(parallelism.expert),
      expert_tensor_(parallelism.expert_tensor),
      instances_(parallelism.num_distributed_optimizer_instances),
      data_stride_(tensor_ * context_ * (parallelism.use_tp_pp_dp_mapping ? pipeline_ : 1)),
      pipeline_stride_(tensor_ * context_ * (parallelism.use_tp_pp_dp_mapping ? 1 : data_)) {}

RankCoordinate ParallelLayout::coordinate(int64_t rank) const {
  if (rank < 0 || rank >= world_size()) throw std::logic_error("ParallelLayout: no such rank");
  RankCoordinate coordinate;
  coordinate.tensor = rank % tensor_;
  coordinate.context = rank / tensor_ % context_;
  coordinate.data = rank / data_stride_ % data_;
  coordinate.pipeline = rank / pipeline_stride_ % pipeline_;
  const int64_t within_stage =
      coordinate.tensor + tensor_ * (coordinate.context + context_ * coordinate.data);
  coordinate.expert_tensor = rank % expert_tensor_;
  coordinate.expert = within_stage / expert_tensor_ % expert_;
  coordinate.expert_data = within_stage / (expert_tensor_ * expert_);
  return coordinate;
}

int64_t ParallelLayout::rank(const RankCoordinate& coordinate) const {
  const auto& c = coordinate;
  return c.tensor + tensor_ * c.context + data_stride_ * c.data + pipeline_stride_ * c.pipeline;
}

RankGroup ParallelLayout::group(GroupKind kind, int64_t rank) const {
  const RankSpan tensor{tensor_, 1};
  const RankSpan context{context_, tensor_};
  const RankSpan data{data_, data_stride_};
  const RankSpan pipeline{pipeline_, pipeline_stride_};
  const RankSpan expert_tensor{expert_tensor_, 1};
  const RankSpan expert{expert_, expert_tensor_};
  const int64_t expert_model = expert_tensor_ * expert_;
  // Stages inside of data ranks: check_rank_order() has the experts' replicas be the data ranks.
  const bool is_data = expert_model == tensor_ * context_;
  const RankSpan expert_data{tensor_ * context_ * data_ / expert_model / instances_,
                             is_data ? data_stride_ : expert_model};
  // Consecutive parts of a stage's ranks (parallel_state.py of Megatron-LM's core), of experts and
  // of the rest alike.
  const RankSpan of_instance{data_ / instances_, data_stride_};
  const RankSpan instances{instances_, of_instance.count * data_stride_};
  const RankSpan ends{.count = pipeline_ > 1 ? 2 : 1,
                      .stride = pipeline.stride * std::max<int64_t>(pipeline_ - 1, 1),
                      .period = pipeline.distance()};

  const auto spans = [&]() -> std::vector<RankSpan> {
    switch (kind) {
      case GroupKind::kWorld:
        return {{world_size(), 1}};
      case GroupKind::kTensor:
        return {tensor};
      case GroupKind::kContext:
        return {context};
      case GroupKind::kData:
        return {data};
      case GroupKind::kPipeline:
        return {pipeline};
      case GroupKind::kDataContext:
        return {context, of_instance};
      case GroupKind::kTensorContext:
        return {tensor, context};
      case GroupKind::kModel:
        return {tensor, pipeline};
      case GroupKind::kEmbedding:
        return {ends};
      case GroupKind::kExpert:
        return {expert};
      case GroupKind::kExpertData:
        return {expert_data};
      case GroupKind::kExpertTensor:
        return {expert_tensor};
      case GroupKind::kExpertModel:
        return {expert_tensor, expert};
      case GroupKind::kInstances:
        return {instances};
      case GroupKind::kStage:
        return {tensor, context, data};
    }
    throw std::logic_error("ParallelLayout: unknown group");
  }();

  RankGroup result{.kind = kind, .first = rank, .spans = spans};
  if (kind == GroupKind::kEmbedding) {
    result.first -= rank / pipeline.stride % pipeline.count * pipeline.stride;
    return result;
  }
  for (const RankSpan& span : spans) {
    result.first -= rank / span.stride % span.count * span.stride;  // mixed radix
  }
  return result;
}

}  // namespace estimator
