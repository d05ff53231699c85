#include "estimator/step/stage_time.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>

#include "estimator/communication/communication_time.h"
#include "estimator/compute/kernel_price.h"
#include "estimator/plan/frameworks.h"
#include "estimator/step/offload_time.h"
#include "estimator/step/overlap.h"

namespace estimator {
namespace {

/// Forward or backward of a chunk, or null for what happens once for each step.
PartTime ChunkTime::*part_of_micro_batch(Direction direction) {
  switch (direction) {
    case Direction::kForward:
      return &ChunkTime::forward;
    case Direction::kRecompute:
    case Direction::kBackward:
      return &ChunkTime::backward;
    case Direction::kReduceGradients:
    case Direction::kOptimizerStep:
      return nullptr;
  }
  throw std::logic_error("unknown direction");
}

/// Which bucketed calls of the data ranks a record is of, or null for any other call. Gradients are
/// reduced once for each step, also where overlap launches them inside the last backward.
BucketTime ChunkTime::*buckets_of(const CollectiveRecord& record) {
  if (!is_of_replicas(record.call.group)) return nullptr;
  switch (record.call.kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kReduceScatter:
      return record.direction == Direction::kOptimizerStep ? nullptr : &ChunkTime::reduce_gradients;
    case CollectiveKind::kAllGather:
      return is_per_micro_batch(record.direction) ? nullptr : &ChunkTime::gather_parameters;
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

/// The data ranks' calls for each micro-batch are FSDP2's; all others' are once for each step.
bool is_of_unit(const CollectiveRecord& record) {
  return is_of_replicas(record.call.group) && record.overlappable &&
         (record.direction == Direction::kForward || record.direction == Direction::kBackward);
}

/// Whether a stage reduces its gradients beside its last backward, where the plan overlaps them. Of
/// a pipeline that does not interleave, Megatron-LM's first stage alone does; "other pipeline
/// stages do grad reduction during pipeline bubble", when they have sent what they send
/// (core/pipeline_parallel/schedules.py, 0.4.0 to 0.19.0, --align-grad-reduce). PyTorch's reducer
/// does on every stage.
bool reduces_beside_backward(const Plan& plan, int64_t stage) {
  return stage == 0 || plan.parallelism.virtual_stages > 1 ||
         traits_of(plan.training.framework).reducer_buckets;
}

/// What the tensor ranks do with a message that came in parts.
CollectiveRecord gather_of_parts(const CollectiveRecord& received, int64_t parts) {
  CollectiveRecord gather = received;
  gather.call.kind = CollectiveKind::kAllGather;
  gather.call.group = GroupKind::kTensor;
  gather.call.group_size = parts;
  gather.call.peer = -1;
  return gather;
}

class StageSum {
 public:
  StageSum(const RankProfile& profile, const StageTarget& target)
      : profile_(profile), target_(target), rates_(target.compute.rates()) {
    time_.chunks.resize(static_cast<std::size_t>(target.plan.parallelism.virtual_stages));
    host_.chunks.resize(time_.chunks.size());
    traffic_.resize(time_.chunks.size());
  }

  void add_kernels() {
    const ComputeTarget& compute = target_.compute;
    for (const OperatorRecord& kernel : profile_.operators) {
      const OperatorPrice price = kernel_price(kernel, rates_, compute);
      const double calls = calls_per_part(kernel.count, kernel.direction, profile_);
      work_.add(kernel, calls, price.seconds);
      add_part(time_, {calls * price.seconds, {}}, kernel.direction, kernel.chunk);
      add_issue(
          kernel.direction, kernel.chunk, calls, issue_seconds(kernel, rates_.launch(), compute));
      if (kernel.name == "aten::_local_scalar_dense") add_wait_for_value(kernel, calls);
      if (is_fused_adam(kernel)) device_update_seconds_ += calls * price.seconds;
    }
  }

  void add_collective(const CollectiveRecord& record) {
    const bool of_ring = is_ring_message(record.call);
    if (is_message(record.call.kind) && !of_ring) return add_message(record);
    if (of_ring && record.call.kind == CollectiveKind::kRecv) return;  // comes while it sends
    const PricedCall call = priced(record);
    if (is_of_unit(record)) return add_beside_units(call);
    if (const auto buckets = buckets_of(record)) return add_buckets(call, buckets);
    PartTime part;
    const double calls = calls_per_part(record.count, record.direction, profile_);
    const double exposed = exposed_seconds(call);
    seconds_of_axis(part.communication_seconds, record.call.group) = exposed * calls;
    add_part(time_, part, record.direction, record.chunk);
    add_traffic(call, calls, std::max(0.0, call.seconds - exposed));
    add_issue(record, calls);
  }

  /// With what the GPU waits for the host in each part, as compute.
  StageTime with_host() {
    for (const auto& [direction, calls] : beside_units_) {
      calls.add_to(time_.chunks.front().*part_of_micro_batch(direction), traffic_of(0, direction));
    }
    for (std::size_t c = 0; c < time_.chunks.size(); ++c) {
      wait_for_host(time_.chunks[c].forward, host_.chunks[c].forward);
      wait_for_host(time_.chunks[c].backward, host_.chunks[c].backward);
    }
    wait_for_host(time_.step_end, host_.step_end);
    if (profile_.host_memory) add_offload(*profile_.host_memory);
    for (std::size_t c = 0; c < time_.chunks.size(); ++c) {
      ChunkTime& chunk = time_.chunks[c];
      share_ports(chunk.reduce_gradients, traffic_of(c, Direction::kBackward), chunk.backward);
      share_ports(chunk.gather_parameters, traffic_of(c, Direction::kForward), chunk.forward);
    }
    return std::move(time_);
  }

 private:
  /// A record's call, and what each takes alone.
  struct PricedCall {
    const CollectiveRecord& record;
    GroupPlacement placement;
    double seconds = 0;
    PortUse use;
  };

  PricedCall priced(const CollectiveRecord& record) const {
    const CollectiveCall& call = record.call;
    const Fabric& fabric = target_.fabric;
    const GroupPlacement placement = place(target_.layout.group(call.group, profile_.rank), fabric);
    const CollectiveTime time = collective_time(call, placement, fabric);
    return {record, placement, time.seconds, port_use(call, placement, time, fabric)};
  }

  /// Of one call, without what it hides beside work.
  double exposed_seconds(const PricedCall& call) const {
    const CollectiveRecord& record = call.record;
    if (is_ring_message(record.call)) {
      return work_.added_by_ring_message(record.direction, call.seconds, share_of_compute(call));
    }
    if (!target_.plan.parallelism.tp_comm_overlap) return call.seconds;
    return work_.added_in_user_buffers(record, call.seconds, target_.compute.gpu.multiprocessors);
  }

  /// What a call takes of the GPU's compute while it runs beside it.
  double share_of_compute(const PricedCall& call) const {
    const int64_t busy = busy_multiprocessors(call.record.call, call.placement, target_.fabric);
    return static_cast<double>(busy) / static_cast<double>(target_.compute.gpu.multiprocessors);
  }

  void add_beside_units(const PricedCall& call) {
    const CollectiveRecord& record = call.record;
    const double calls = calls_per_part(record.count, record.direction, profile_);
    UnitCalls& beside = beside_units_[record.direction];
    beside.use = mean_use(beside.seconds.sum, beside.use, calls * call.seconds, call.use);
    beside.seconds.add(calls, call.seconds);
    beside.compute_share = share_of_compute(call);
    add_issue(record, calls);
  }

  /// Which calls are in a part, for those that run beside it.
  void add_traffic(const PricedCall& call, double calls, double hidden_seconds) {
    const CollectiveRecord& record = call.record;
    if (part_of_micro_batch(record.direction) == nullptr) return;
    traffic_of(index_of(record.chunk), record.direction)
        .add(calls * call.seconds, calls * hidden_seconds, call.use);
  }

  PortTraffic& traffic_of(std::size_t chunk, Direction direction) {
    ChunkTraffic& traffic = traffic_[chunk];
    return direction == Direction::kForward ? traffic.forward : traffic.backward;
  }

  static void share_ports(BucketTime& buckets, const PortTraffic& traffic, const PartTime& work) {
    if (!buckets.overlappable) return;
    const double shared = traffic.shared_seconds(buckets.use);
    buckets.port_share = shared > 0 ? shared / work.total_seconds() : 0;
  }

  /// The host issues `calls`, kernels or collectives, one after the other.
  void add_issue(Direction direction, int64_t chunk, double calls, double seconds_of_each) {
    const double wait = target_.plan.time.launch_blocking ? rates_.launch().wait_seconds : 0;
    add_part(host_, {calls * (seconds_of_each + wait), {}}, direction, chunk);
  }

  void add_issue(const CollectiveRecord& record, double calls) {
    add_issue(
        record.direction, record.chunk, calls, rates_.launch().host_seconds(record.direction));
  }

  /// The host reads a number, for which it waits until the GPU is done; then the GPU is idle until
  /// the next call has come. Under launch blocking it always is.
  void add_wait_for_value(const OperatorRecord& kernel, double calls) {
    if (target_.plan.time.launch_blocking) return;
    const LaunchCost& launch = rates_.launch();
    const double idle = launch.wait_seconds + launch.host_seconds(kernel.direction);
    add_part(time_, {calls * idle, {}}, kernel.direction, kernel.chunk);
  }

  /// The host works ahead of the GPU as long as it can; under launch blocking they take turns.
  void wait_for_host(PartTime& gpu, const PartTime& host) const {
    const double beside = target_.plan.time.launch_blocking ? 0 : gpu.total_seconds();
    gpu.compute_seconds += std::max(0.0, host.compute_seconds - beside);
  }

  /// What stays on the GPU is updated there while the host works.
  void add_offload(const HostMemoryRecord& host) {
    const Plan& plan = target_.plan;
    time_.offload =
        offload_time(host.pieces, host_share(plan), plan.training.overlap_cpu_optimizer_d2h_h2d);
    const double beside = std::min(device_update_seconds_, time_.offload->update_seconds);
    time_.step_end.compute_seconds += time_.offload->total_seconds - beside;
  }

  /// The place of a chunk in the lists of chunks.
  std::size_t index_of(int64_t chunk) const {
    return std::min(static_cast<std::size_t>(std::max<int64_t>(0, chunk)), traffic_.size() - 1);
  }

  void add_part(StageTime& sum, const PartTime& part, Direction direction, int64_t chunk) const {
    const auto of_chunk = part_of_micro_batch(direction);
    add(of_chunk == nullptr ? sum.step_end : sum.chunks[index_of(chunk)].*of_chunk, part);
  }

  void add_message(const CollectiveRecord& record) {
    if (record.call.group != GroupKind::kPipeline) return;
    const ParallelConfig& parallelism = target_.plan.parallelism;
    const bool in_parts = traits_of(target_.plan.training.framework).partitioned_sends &&
                          !parallelism.sequence_parallel;  // whose messages are parts already
    const int64_t parts = in_parts ? parallelism.tensor : 1;
    if (record.call.kind == CollectiveKind::kRecv) {
      if (parts > 1) add_collective(gather_of_parts(record, parts));
      return;
    }
    (record.direction == Direction::kForward ? time_.send_forward_bytes
                                             : time_.send_backward_bytes) =
        record.call.bytes / parts;
  }

  void add_buckets(const PricedCall& call, BucketTime ChunkTime::*of_chunk) {
    const CollectiveRecord& record = call.record;
    const bool may_overlap = of_chunk != &ChunkTime::reduce_gradients ||
                             reduces_beside_backward(target_.plan, profile_.coordinate.pipeline);
    BucketTime& buckets = time_.chunks[index_of(record.chunk)].*of_chunk;
    const double seconds = static_cast<double>(record.count) * call.seconds;
    buckets.use = mean_use(buckets.sum_seconds, buckets.use, seconds, call.use);
    buckets.sum_seconds += seconds;
    buckets.buckets += record.count;
    buckets.overlappable |= record.overlappable && may_overlap;
    buckets.compute_share = share_of_compute(call);
  }

  /// Of one chunk and one micro-batch.
  struct ChunkTraffic {
    PortTraffic forward, backward;
  };

  const RankProfile& profile_;
  const StageTarget& target_;
  const GpuRates rates_;
  WorkBeside work_;
  double device_update_seconds_ = 0;             ///< AdamW on the GPU
  std::map<Direction, UnitCalls> beside_units_;  ///< of one micro-batch
  std::vector<ChunkTraffic> traffic_;
  StageTime time_;  ///< the GPU's
  StageTime host_;  ///< the host's, as compute
};

}  // namespace

void add(ExposedCommunication& sum, const ExposedCommunication& part, double times) {
  sum.tensor += times * part.tensor;
  sum.pipeline += times * part.pipeline;
  sum.data += times * part.data;
  sum.context += times * part.context;
  sum.expert += times * part.expert;
}

void add(PartTime& sum, const PartTime& part, double times) {
  sum.compute_seconds += times * part.compute_seconds;
  add(sum.communication_seconds, part.communication_seconds, times);
}

double sum_of(const ExposedCommunication& c) {
  return c.tensor + c.pipeline + c.data + c.context + c.expert;
}

double PartTime::total_seconds() const { return compute_seconds + sum_of(communication_seconds); }

double BucketTime::beside(double work_seconds) const {
  if (buckets == 0) return 0;
  return std::min(sum_seconds, work_seconds) * (1 - 1 / static_cast<double>(buckets));
}

double BucketTime::reduced_at(double end_seconds, double work_seconds, double free_seconds) const {
  if (buckets == 0) return free_seconds;
  const auto n = static_cast<double>(buckets);
  const double first_full = end_seconds - work_seconds * (1 - 1 / n);
  return std::max({free_seconds, first_full, end_seconds - sum_seconds * (1 - 1 / n)}) +
         sum_seconds;
}

double BucketTime::ready_at(double free_seconds, double work_seconds) const {
  if (buckets == 0) return 0;
  const auto n = static_cast<double>(buckets);
  const double done = free_seconds + sum_seconds;
  const double ready =
      std::max({0.0, free_seconds + sum_seconds / n, done - work_seconds * (1 - 1 / n)});
  const double beside = std::clamp(done - ready, 0.0, work_seconds);
  // Side by side the two take no longer than one after the other.
  return ready + std::min(1.0, compute_share + port_share) * beside;
}

PartTime StageTime::forward() const {
  PartTime sum;
  for (const ChunkTime& chunk : chunks) add(sum, chunk.forward);
  return sum;
}

PartTime StageTime::backward() const {
  PartTime sum;
  for (const ChunkTime& chunk : chunks) add(sum, chunk.backward);
  return sum;
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
    case GroupKind::kExpertData:
      return communication.data;
    case GroupKind::kContext:
    case GroupKind::kTensorContext:
      return communication.context;
    case GroupKind::kExpert:
    case GroupKind::kExpertTensor:
    case GroupKind::kExpertModel:
      return communication.expert;
  }
  throw std::logic_error("unknown group");
}

StageTime stage_time(const RankProfile& profile, const StageTarget& target) {
  StageSum sum(profile, target);
  sum.add_kernels();
  for (const CollectiveRecord& record : profile.collectives) sum.add_collective(record);
  return sum.with_host();
}

}  // namespace estimator
