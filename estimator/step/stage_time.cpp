#include "estimator/step/stage_time.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "estimator/communication/communication_time.h"
#include "estimator/communication/expert_dispatch.h"
#include "estimator/compute/kernel_price.h"
#include "estimator/plan/drawn_experts.h"
#include "estimator/plan/frameworks.h"
#include "estimator/plan/megatron_core.h"
#include "estimator/step/axis_seconds.h"
#include "estimator/step/offload_time.h"
#include "estimator/step/user_buffers.h"

namespace estimator {
namespace {

/// Calls of a part: records are counted over the iteration, forward and backward are of one
/// micro-batch.
double calls_per_part(int64_t count, Direction direction, const RankProfile& profile) {
  const int64_t parts =
      is_per_micro_batch(direction) ? std::max<int64_t>(1, profile.micro_batches.total) : 1;
  return static_cast<double>(count) / static_cast<double>(parts);
}

/// Whether a record is played with a chunk, and not only summed up at the end of the step.
bool is_of_chunk(Direction direction, int64_t chunk) {
  return is_per_micro_batch(direction) || (direction == Direction::kReduceGradients && chunk >= 0);
}

/// A gather of updated parameters: played if it is before the end of a forward.
bool is_gather(const CollectiveRecord& record) {
  return record.direction == Direction::kOptimizerStep &&
         record.call.kind == CollectiveKind::kAllGather && is_of_replicas(record.call.group);
}

/// Whether the host waits for its GPU at the end of each forward and backward.
bool synchronizes_sends(const Plan& plan) {
  const ParallelConfig& parallelism = plan.parallelism;
  const bool overlaps = parallelism.virtual_stages > 1 && parallelism.overlap_p2p_communication;
  return parallelism.pipeline > 1 && !overlaps &&
         traits_of(plan.training.framework).synchronized_sends;
}

/// Whether the host waits for its GPU before each micro-batch: TorchTitan copies its tokens from
/// memory that is not page-locked (train_step() in torchtitan/train.py of v0.2.2).
bool waits_for_tokens(const Plan& plan) {
  return plan.training.framework == Framework::kTorchtitan && plan.parallelism.pipeline == 1;
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

/// A profile whose order was not recorded: its records one after the other, last what happens once.
StepOrder in_sequence(const RankProfile& profile) {
  StepOrder order{.modules = {""}, .events = {}};
  const auto add = [&](OrderKind kind, std::size_t item, int64_t chunk, Direction direction) {
    order.events.add(
        {.kind = kind, .item = static_cast<int64_t>(item), .chunk = chunk, .direction = direction});
  };
  const auto add_all = [&](bool per_micro_batch, OrderKind kind, const auto& records) {
    for (std::size_t i = 0; i < records.size(); ++i) {
      if (is_per_micro_batch(records[i].direction) != per_micro_batch) continue;
      add(kind, i, records[i].chunk, records[i].direction);
    }
  };
  for (const bool per_micro_batch : {true, false}) {
    add_all(per_micro_batch, OrderKind::kOperator, profile.operators);
    add_all(per_micro_batch, OrderKind::kCollective, profile.collectives);
  }
  return order;
}

/// What is allocated at each of the part's works, above what was allocated as it began.
std::vector<int64_t> added_memory(const OrderEvents& events,
                                  const PartMemory& part,
                                  const std::vector<MicroBatchWork>& works) {
  std::vector<int64_t> added;
  for (const MicroBatchWork& work : works) {
    const auto direction = static_cast<Direction>(events.direction[work.event]);
    const bool is_of_part =
        is_per_micro_batch(direction) && (direction == Direction::kForward) == part.is_forward;
    if (is_of_part) added.push_back(events.allocated_bytes[work.event] - part.begin_bytes);
  }
  return added;
}

std::vector<int64_t> largest_of_spans(const std::vector<int64_t>& values) {
  constexpr std::size_t kSpans = 6;
  const std::size_t spans = std::min(kSpans, values.size());
  const auto begin_of = [&](std::size_t span) {
    return values.begin() + static_cast<std::ptrdiff_t>(span * values.size() / spans);
  };
  std::vector<int64_t> largest;
  for (std::size_t i = 0; i < spans; ++i) {
    largest.push_back(*std::max_element(begin_of(i), begin_of(i + 1)));
  }
  return largest;
}

/// FSDP2's units in a model chunk: its layers, the experts of a layer whose ranks are others, and
/// the ends of the model, which are one unit in some frameworks.
int64_t units_of_chunk(const Plan& plan, int64_t stage, std::size_t chunk) {
  const std::vector<int64_t> layers = plan.layers_of_chunks(stage);
  const auto first = std::accumulate(
      layers.begin(), layers.begin() + static_cast<std::ptrdiff_t>(chunk), int64_t{0});
  const std::vector<bool> experts = plan.expert_layers_of_stage(stage);
  const auto begin = experts.begin() + first;
  const int64_t inside =
      plan.parallelism.expert > 1 ? std::count(begin, begin + layers[chunk], true) : 0;
  const int64_t is_first = stage == 0 && chunk == 0;
  const int64_t is_last = stage == plan.parallelism.pipeline - 1 && chunk + 1 == layers.size();
  const bool is_one = traits_of(plan.training.framework).root_unit;
  return layers[chunk] + inside + (is_one ? is_first | is_last : is_first + is_last);
}

class StageSum {
 public:
  StageSum(const RankProfile& profile, const StageTarget& target)
      : profile_(profile),
        target_(target),
        rates_(target.compute.rates()),
        launch_(with_torch_of(target.plan.training.framework, rates_.launch())) {
    time_.chunks.resize(static_cast<std::size_t>(target.plan.parallelism.virtual_stages));
    time_.gathers_begin_with_step = gather_start(target.plan) != GatherStart::kAtFirstUse;
  }

  StageTime time() {
    for (const OperatorRecord& kernel : profile_.operators) add_kernel(kernel);
    for (const CollectiveRecord& record : profile_.collectives) add_collective(record);
    replay_chunks();
    wait_for_host();
    if (profile_.host_memory) add_offload(*profile_.host_memory);
    return std::move(time_);
  }

 private:
  void add_kernel(const OperatorRecord& kernel) {
    if (kernel.name == kDispatchKernel || kernel.name == kCombineKernel)
      return add_dispatch(kernel);
    const OperatorPrice price = kernel_price(kernel, rates_, target_.compute);
    const double issue = issue_seconds(kernel, launch_, target_.compute);
    const double calls = calls_per_part(kernel.count, kernel.direction, profile_);
    std::optional<RecordPrice>& record = records_.operators.emplace_back();
    const WorkPrice work = work_price(kernel, price.seconds);
    add_energy(work, calls, kernel.direction);
    if (is_fused_adam(kernel)) device_update_seconds_ += calls * price.seconds;
    const bool reads_value = kernel.name == "aten::_local_scalar_dense";
    if (!is_of_chunk(kernel.direction, kernel.chunk)) {
      return add_to_end(price.seconds, issue, reads_value, calls);
    }
    if (is_matmul(kernel)) buffers_.add(kernel, calls, price.seconds);
    record = RecordPrice{
        .price = work, .issue_seconds = issue, .host_waits = is_blocking() || reads_value};
    use_in_sequence(*record, calls);
  }

  /// A dispatch or a combine, in which all ranks of the experts meet.
  void add_dispatch(const OperatorRecord& kernel) {
    const ExpertDispatch call = expert_dispatch(target_.plan, target_.layout, target_.fabric);
    const double share = static_cast<double>(call.multiprocessors) /
                         static_cast<double>(rates_.gpu().multiprocessors);
    RecordPrice& record = records_.operators.emplace_back().emplace(RecordPrice{
        .price = {.seconds =
                      expert_dispatch_seconds(call, target_.fabric, kernel.name == kCombineKernel),
                  .work_class = WorkClass::kCommunication,
                  .occupancy = {.multiprocessors = share}},
        .issue_seconds = launch_.host_call_seconds,
        .group = GroupKind::kExpertModel,
        .axis_group = axis_group(GroupKind::kExpertModel, target_.plan.parallelism)});
    use_in_sequence(record, calls_per_part(kernel.count, kernel.direction, profile_));
  }

  WorkPrice work_price(const OperatorRecord& kernel, double seconds) const {
    WorkPrice work = {
        .seconds = seconds,
        .work_class = class_of(kernel),
        .occupancy = {.multiprocessors = 1,
                      .memory = share_of_memory(kernel.bytes, seconds, rates_),
                      .is_persistent = is_matmul(kernel) && has_persistent_products(rates_.gpu())}};
    if (rates_.power() == nullptr) return work;
    work.joules = joules_of(work,
                            operand_dtype(kernel, target_.compute.dtype),
                            kernel.flops,
                            rates_,
                            product_speed(kernel, rates_));
    return work;
  }

  void add_energy(const WorkPrice& work, double calls, Direction direction) {
    const bool is_often = is_per_micro_batch(direction);
    StageEnergy& energy = time_.energy;
    (is_often ? energy.joules_per_micro_batch : energy.joules_per_step) += calls * work.joules;
    if (!is_bound_by_arithmetic(work)) return;
    (is_often ? energy.arithmetic_seconds_per_micro_batch : energy.arithmetic_seconds_per_step) +=
        calls * work.seconds;
  }

  static WorkClass class_of(const OperatorRecord& kernel) {
    if (kernel.name == kDispatchKernel || kernel.name == kCombineKernel) {
      return WorkClass::kCommunication;
    }
    if (is_attention(kernel)) return WorkClass::kAttention;
    return is_matmul(kernel) ? WorkClass::kProducts : WorkClass::kMemoryBound;
  }

  bool is_blocking() const { return target_.plan.time.launch_blocking; }

  /// Without an order a record stands for all its calls. After each for which the host waits the
  /// GPU is idle until the next one has come.
  void use_in_sequence(RecordPrice& record, double calls) const {
    if (profile_.order) return;
    const double idle = launch_.wait_seconds + record.issue_seconds;
    record.price.seconds = calls * (record.price.seconds + (record.host_waits ? idle : 0));
    record.issue_seconds *= record.host_waits ? 0 : calls;
    record.host_waits = false;
  }

  /// When the host has read a value, the GPU is idle until the next call has come; under launch
  /// blocking it always is.
  void add_to_end(double seconds, double issue, bool reads_value, double calls) {
    const double idle = reads_value && !is_blocking() ? launch_.wait_seconds + issue : 0;
    time_.step_end.compute_seconds += calls * (seconds + idle);
    issue_at_end(issue, calls);
  }

  void issue_at_end(double seconds, double calls) {
    host_end_seconds_ += calls * (seconds + (is_blocking() ? launch_.wait_seconds : 0));
  }

  WorkPrice price_of(const CollectiveRecord& record) const {
    return collective_price(record.call,
                            target_.layout.group(record.call.group, profile_.rank),
                            rates_,
                            target_.fabric);
  }

  void add_collective(const CollectiveRecord& record) {
    records_.collectives.emplace_back();
    if (is_message(record.call.kind) && !is_ring_message(record.call)) return add_message(record);
    add_call(record);
  }

  void add_call(const CollectiveRecord& record) {
    const CollectiveCall& call = record.call;
    const double calls = calls_per_part(record.count, record.direction, profile_);
    const double issue = launch_.host_call_seconds;
    WorkPrice price = price_of(record);
    price.joules = joules_of(price, call.dtype, 0, rates_);
    add_energy(price, calls, record.direction);
    if (is_gather(record)) {
      gather_seconds_[index_of(record.chunk)] += calls * price.seconds;
    } else if (!is_of_chunk(record.direction, record.chunk)) {
      seconds_of_axis(time_.step_end.communication_seconds,
                      axis_group(call.group, target_.plan.parallelism)) += calls * price.seconds;
      return issue_at_end(issue, calls);
    }
    if (target_.plan.parallelism.tp_comm_overlap) {
      price.seconds =
          buffers_.seconds_added(record, price.seconds, target_.compute.gpu.multiprocessors);
    }
    if (call.kind == CollectiveKind::kRecv) price.occupancy = {};  // those are of what is sent
    RecordPrice& priced = records_.collectives.back().emplace(
        RecordPrice{.price = price,
                    .issue_seconds = issue,
                    .group = call.group,
                    .axis_group = axis_group(call.group, target_.plan.parallelism),
                    .is_message = is_message(call.kind),
                    .host_waits = is_blocking()});
    use_in_sequence(priced, calls);
  }

  void add_message(const CollectiveRecord& record) {
    if (record.call.group != GroupKind::kPipeline) return;
    const ParallelConfig& parallelism = target_.plan.parallelism;
    const bool in_parts = traits_of(target_.plan.training.framework).partitioned_sends &&
                          !parallelism.sequence_parallel;  // whose messages are parts already
    const int64_t parts = in_parts ? parallelism.tensor : 1;
    if (record.call.kind == CollectiveKind::kRecv) {
      if (parts > 1) add_call(gather_of_parts(record, parts));
      return;
    }
    (record.direction == Direction::kForward ? time_.send_forward_bytes
                                             : time_.send_backward_bytes) =
        record.call.bytes / parts;
  }

  /// Such a host has nothing to do between its wait and the next step.
  std::optional<double> waits_before_step() const {
    const bool waits =
        profile_.order && traits_of(target_.plan.training.framework).synchronized_steps;
    return waits ? std::optional(0.0) : std::nullopt;
  }

  /// FSDP2's hooks before and after a unit are Python's.
  void add_hooks(std::size_t chunk, HostWaits& waits) const {
    if (!target_.plan.fully_sharded()) return;
    const auto units =
        static_cast<double>(units_of_chunk(target_.plan, profile_.coordinate.pipeline, chunk));
    const std::map<std::string, double>& ranges = launch_.host_ranges;
    waits.beside_forward_seconds = units * ranges.at("FSDP::pre_forward");
    waits.beside_backward_seconds = units * ranges.at("FSDP::pre_backward");
  }

  /// Of what is played with no chunk: what the host dispatches there.
  void add_dispatches_at_end(const OrderEvents& events) {
    for (std::size_t i = 0; i < events.kind.size(); ++i) {
      if (is_of_chunk(static_cast<Direction>(events.direction[i]), events.chunk[i])) continue;
      host_end_seconds_ += static_cast<double>(events.operators[i]) * launch_.host_operator_seconds;
    }
  }

  void replay_chunks() {
    std::optional<StepOrder> made;
    const StepOrder& order = profile_.order ? *profile_.order : made.emplace(in_sequence(profile_));
    records_.graphs = graph_launches(target_.plan, order, launch_);
    add_dispatches_at_end(order.events);
    HostWaits waits{.seconds = launch_.wait_seconds,
                    .at_ends_of_parts = profile_.order && synchronizes_sends(target_.plan),
                    .at_ends_of_micro_batches = profile_.order && waits_for_tokens(target_.plan),
                    .before_step = waits_before_step(),
                    .operator_seconds = launch_.host_operator_seconds};
    for (std::size_t c = 0; c < time_.chunks.size(); ++c) {
      add_hooks(c, waits);
      const ChunkReplay time =
          replay_chunk(order, records_, static_cast<int64_t>(c), waits, target_.keep_works);
      time_.chunks[c] = {.forward = time.forward,
                         .backward = time.backward,
                         .gathers = time.gathers,
                         .reduction = time.reduction};
      if (time.gathers.seconds == 0) time_.gather_seconds += gather_seconds_[c];
      if (c == 0) add_to_first(time.first_added_seconds, waits);
      for (const MicroBatchWork& work : time.works) {
        time_.chunks[c].works.push_back(shown(work, order));
      }
      if (target_.keep_works) add_memory(order, c, time.works);
    }
    if (target_.keep_works) add_memory_before();
  }

  void add_memory(const StepOrder& order,
                  std::size_t chunk,
                  const std::vector<MicroBatchWork>& works) {
    for (const PartMemory& part : order.memory) {
      if (index_of(part.chunk) != chunk) continue;
      ChunkTime& time = time_.chunks[chunk];
      PartMemoryChange change;
      change.largest_bytes = largest_of_spans(added_memory(order.events, part, works));
      change.end_bytes = part.end_bytes - part.begin_bytes;
      (part.is_forward ? time.forward_memory : time.backward_memory) = std::move(change);
    }
  }

  void add_memory_before() {
    const auto phase =
        std::find_if(profile_.phases.rbegin(), profile_.phases.rend(), [](const auto& record) {
          return record.name.ends_with(".forward_backward");
        });
    if (phase != profile_.phases.rend()) {
      time_.allocated_before_bytes = phase->before.allocated_bytes;
    }
  }

  void add_to_first(double seconds, const HostWaits& waits) {
    PartTime& first = time_.first_added;
    (waits.before_step ? first.compute_seconds : first.communication_seconds.data) = seconds;
  }

  ShownWork shown(const MicroBatchWork& work, const StepOrder& order) const {
    const OrderEvents& events = order.events;
    const auto item = static_cast<std::size_t>(events.item[work.event]);
    ShownWork shown{.direction = static_cast<Direction>(events.direction[work.event]),
                    .module = order.modules[static_cast<std::size_t>(events.module[work.event])],
                    .stream = events.stream[work.event],
                    .begin_seconds = work.begin,
                    .end_seconds = work.end};
    if (events.kind[work.event] == static_cast<int64_t>(OrderKind::kCollective)) {
      const CollectiveCall& call = profile_.collectives[item].call;
      shown.name = to_string(call.kind);
      shown.category = to_string(WorkClass::kCommunication);
      shown.group = call.group;
      shown.bytes = call.bytes;
    } else {
      const OperatorRecord& record = profile_.operators[item];
      shown.name = record.name;
      shown.category = to_string(class_of(record));
      shown.bytes = static_cast<int64_t>(record.bytes);
    }
    return shown;
  }

  /// The host works ahead of the GPU as long as it can; under launch blocking they take turns.
  void wait_for_host() {
    PartTime& gpu = time_.step_end;
    const double beside = is_blocking() ? 0 : gpu.total_seconds();
    gpu.compute_seconds += std::max(0.0, host_end_seconds_ - beside);
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
    return std::min(static_cast<std::size_t>(std::max<int64_t>(0, chunk)), time_.chunks.size() - 1);
  }

  const RankProfile& profile_;
  const StageTarget& target_;
  const GpuRates rates_;
  const LaunchCost launch_;
  PricedRecords records_;
  UserBuffers buffers_;
  double device_update_seconds_ = 0;              ///< AdamW on the GPU
  std::map<std::size_t, double> gather_seconds_;  ///< by chunk
  StageTime time_;
  double host_end_seconds_ = 0;  ///< that the host needs for the step's end
};

}  // namespace

StepEnergy StageEnergy::of_step(int64_t micro_batches, double seconds) const {
  const auto times = static_cast<double>(micro_batches);
  const double arithmetic =
      times * arithmetic_seconds_per_micro_batch + arithmetic_seconds_per_step;
  return {.joules = times * joules_per_micro_batch + joules_per_step,
          .seconds = seconds,
          .arithmetic_seconds = std::min(arithmetic, seconds)};
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

StageTime stage_time(const RankProfile& profile, const StageTarget& target) {
  return StageSum(profile, target).time();
}

}  // namespace estimator
