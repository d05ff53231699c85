#include "estimator/stage_time.h"

#include <algorithm>
#include <stdexcept>

#include "estimator/communication_time.h"
#include "estimator/executed_kernels.h"

namespace estimator {
namespace {

bool is_point_to_point(const CollectiveCall& call) {
  return call.kind == CollectiveKind::kSend || call.kind == CollectiveKind::kRecv;
}

bool is_data_group(GroupKind group) {
  return group == GroupKind::kData || group == GroupKind::kDataContext;
}

/// Where a record's seconds go.
PartTime& part_of(StageTime& time, Direction direction) {
  switch (direction) {
    case Direction::kForward:
      return time.forward;
    case Direction::kRecompute:
    case Direction::kBackward:
      return time.backward;
    case Direction::kReduceGradients:
    case Direction::kOptimizerStep:
      return time.step_end;
  }
  throw std::logic_error("unknown direction");
}

/// The bucketed calls of the data ranks, or null for any other call. Gradients are reduced once for
/// each step, also where overlap launches them inside the last backward.
BucketTime* buckets_of(StageTime& time, const CollectiveRecord& record) {
  if (!is_data_group(record.call.group)) return nullptr;
  switch (record.call.kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kReduceScatter:
      return record.direction == Direction::kOptimizerStep ? nullptr : &time.reduce_gradients;
    case CollectiveKind::kAllGather:
      return is_per_micro_batch(record.direction) ? nullptr : &time.gather_parameters;
    default:
      return nullptr;
  }
}

/// Calls of a part: records are counted over the iteration, forward and backward are of one
/// micro-batch.
double calls_per_part(int64_t count, Direction direction, const RankProfile& profile) {
  const int64_t parts =
      is_per_micro_batch(direction) ? std::max<int64_t>(1, profile.micro_batches.total) : 1;
  return static_cast<double>(count) / static_cast<double>(parts);
}

/// In the pipeline group, the member index is the stage. Whatever direction a send was recorded in,
/// the plan has one in each way for each micro-batch.
void add_send(const CollectiveRecord& record, const RankProfile& profile, StageTime& time) {
  const CollectiveCall& call = record.call;
  if (call.kind != CollectiveKind::kSend || call.group != GroupKind::kPipeline) return;
  const double calls = calls_per_part(record.count, Direction::kForward, profile);
  const auto bytes = static_cast<int64_t>(static_cast<double>(call.bytes) * calls);
  (call.peer > profile.coordinate.pipeline ? time.send_forward_bytes : time.send_backward_bytes) +=
      bytes;
}

void add_collective(const CollectiveRecord& record,
                    double seconds_of_call,
                    const RankProfile& profile,
                    StageTime& time) {
  if (BucketTime* buckets = buckets_of(time, record)) {
    buckets->sum_seconds += seconds_of_call * static_cast<double>(record.count);
    buckets->buckets += record.count;
    buckets->overlappable |= record.overlappable;
    return;
  }
  const double seconds = seconds_of_call * calls_per_part(record.count, record.direction, profile);
  seconds_of_axis(part_of(time, record.direction).communication_seconds, record.call.group) +=
      seconds;
}

/// The GPU's seconds of all kernels; or, in a part that the host launches more slowly than the GPU
/// works, the host's.
void add_kernels(const RankProfile& profile, const ComputeTarget& target, StageTime& time) {
  const GpuRates rates = target.rates();
  StageTime host;
  for (const OperatorRecord& kernel : executed_kernels(profile.operators, target.dialect)) {
    const OperatorPrice price = operator_price(kernel, rates, target.dtype);
    const double calls = calls_per_part(kernel.count, kernel.direction, profile);
    part_of(time, kernel.direction).compute_seconds += calls * price.seconds;
    part_of(host, kernel.direction).compute_seconds += calls * price.host_seconds;
  }
  for (PartTime StageTime::*part :
       {&StageTime::forward, &StageTime::backward, &StageTime::step_end}) {
    (time.*part).compute_seconds =
        std::max((time.*part).compute_seconds, (host.*part).compute_seconds);
  }
}

}  // namespace

double sum_of(const ExposedCommunication& c) {
  return c.tensor + c.pipeline + c.data + c.context + c.expert;
}

double PartTime::total_seconds() const { return compute_seconds + sum_of(communication_seconds); }

double BucketTime::exposed_seconds(double behind_seconds) const {
  if (!overlappable || buckets == 0) return sum_seconds;
  const double one_seconds = sum_seconds / static_cast<double>(buckets);
  return one_seconds + std::max(0.0, sum_seconds - one_seconds - behind_seconds);
}

double& seconds_of_axis(ExposedCommunication& communication, GroupKind group) {
  switch (group) {
    case GroupKind::kTensor:
    case GroupKind::kModel:
    case GroupKind::kWorld:
      return communication.tensor;
    case GroupKind::kPipeline:
    case GroupKind::kEmbedding:
      return communication.pipeline;
    case GroupKind::kData:
    case GroupKind::kDataContext:
      return communication.data;
    case GroupKind::kContext:
    case GroupKind::kTensorContext:
      return communication.context;
    case GroupKind::kExpert:
    case GroupKind::kExpertData:
      return communication.expert;
  }
  throw std::logic_error("unknown group");
}

StageTime stage_time(const RankProfile& profile,
                     const ComputeTarget& target,
                     const ParallelLayout& layout,
                     const Fabric& fabric) {
  StageTime time;
  add_kernels(profile, target, time);
  for (const CollectiveRecord& record : profile.collectives) {
    if (is_point_to_point(record.call)) {
      add_send(record, profile, time);
      continue;
    }
    const RankGroup group = layout.group(record.call.group, profile.rank);
    add_collective(record, collective_seconds(record.call, group, fabric), profile, time);
  }
  return time;
}

}  // namespace estimator
