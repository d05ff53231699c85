#include "estimator/step/stage_time.h"

#include <algorithm>
#include <deque>
#include <map>
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
#include "estimator/step/combined_events.h"
#include "estimator/step/host_waits.h"
#include "estimator/step/made_order.h"
#include "estimator/step/offload_time.h"
#include "estimator/step/shown_work.h"
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

/// What the tensor ranks do with a message that came in parts.
CollectiveRecord gather_of_parts(const CollectiveRecord& received, int64_t parts) {
  CollectiveRecord gather = received;
  gather.call.kind = CollectiveKind::kAllGather;
  gather.call.group = GroupKind::kTensor;
  gather.call.group_size = parts;
  gather.call.peer = -1;
  return gather;
}

/// Of the optimizer's step, in which the data ranks of the plan have another share.
OperatorRecord shared_out(OperatorRecord kernel, double share) {
  kernel.flops *= share;
  kernel.bytes *= share;
  return kernel;
}

bool is_of_optimizer(const OperatorRecord& kernel) {
  return kernel.direction == Direction::kOptimizerStep;
}

/// Whether the price depends on more than the GPU and the kernel: on the ranks of the plan.
bool is_of_plan(const OperatorRecord& kernel) {
  return is_of_optimizer(kernel) || is_dispatch(kernel);
}

}  // namespace

class StagePricer::Sum {
 public:
  explicit Sum(const RankProfile& profile)
      : profile_(profile),
        made_order_(profile.order ? std::nullopt : std::optional(in_sequence(profile))),
        order_(profile.order ? *profile.order : *made_order_) {}

  StageTime time(const StageRecords& records, const StageTarget& target) {
    begin(records, target);
    for (std::size_t i = 0; i < profile_.operators.size(); ++i) {
      const OperatorRecord& kernel = profile_.operators[i];
      std::optional<RecordPrice>& record = at_->records.operators[i];
      if (is_dispatch(kernel)) add_dispatch(kernel, target, record);
      if (is_of_optimizer(kernel)) add_update(kernel, records.optimizer_share, target, record);
    }
    for (const CollectiveRecord& record : records.collectives) add_collective(record, target);
    replay_chunks(records, target);
    wait_for_host();
    if (profile_.host_memory) add_offload(*profile_.host_memory, target.plan);
    return std::move(total_.time);
  }

 private:
  /// What is added up.
  struct Total {
    StageTime time;
    double device_update_seconds = 0;              ///< AdamW on the GPU
    double host_end_seconds = 0;                   ///< that the host needs for the step's end
    std::map<std::size_t, double> gather_seconds;  ///< by chunk
  };

  /// The kernels of the profile, but for those of the optimizer, on one target.
  struct Kernels {
    explicit Kernels(const StageTarget& target)
        : compute(target.compute),
          rates(compute.rates()),
          launch(with_torch_of(target.plan.training.framework, rates.launch())),
          buffers(target.plan) {}

    ComputeTarget compute;
    GpuRates rates;
    LaunchCost launch;
    PricedRecords records;
    UserBuffers buffers;
    Total total;
  };

  Kernels& kernels_on(const StageTarget& target) {
    for (Kernels& known : kernels_) {
      const bool is_same = known.compute.slowdown == target.compute.slowdown &&
                           known.compute.speed == target.compute.speed;
      if (is_same) return known;
    }
    at_ = &kernels_.emplace_back(target);
    total_ = {};
    for (const OperatorRecord& kernel : profile_.operators) {
      at_->records.operators.emplace_back();
      if (!is_of_plan(kernel)) add_kernel(kernel, at_->records.operators.back());
    }
    at_->records.graphs = graph_launches(target.plan, order_, at_->launch);
    add_dispatches_at_end(order_.events);
    at_->total = total_;
    return *at_;
  }

  void begin(const StageRecords& records, const StageTarget& target) {
    rank_ = records.rank;
    is_blocking_ = target.plan.time.launch_blocking;
    at_ = &kernels_on(target);
    at_->records.collectives.clear();
    total_ = at_->total;
    total_.time.chunks.resize(static_cast<std::size_t>(records.chunks));
    total_.time.gathers_begin_with_step = gather_start(target.plan) != GatherStart::kAtFirstUse;
  }

  void add_kernel(const OperatorRecord& kernel, std::optional<RecordPrice>& record) {
    const OperatorPrice price = kernel_price(kernel, at_->rates, at_->compute);
    const double issue = issue_seconds(kernel, at_->launch);
    const double calls = calls_per_part(kernel.count, kernel.direction, profile_);
    const WorkPrice work = work_price(kernel, price.seconds);
    add_energy(work, calls, kernel.direction);
    if (is_fused_adam(kernel)) total_.device_update_seconds += calls * price.seconds;
    const bool reads_value = kernel.name == "aten::_local_scalar_dense";
    if (!is_of_chunk(kernel.direction, kernel.chunk)) {
      return add_to_end(price.seconds, issue, reads_value, calls);
    }
    if (is_matmul(kernel)) at_->buffers.add(kernel, calls, price.seconds);
    record = RecordPrice{
        .price = work, .issue_seconds = issue, .host_waits = is_blocking_ || reads_value};
    use_in_sequence(*record, calls);
  }

  /// The first chunk's parameters are gathered while the optimizer updates what follows it.
  void add_update(const OperatorRecord& kernel,
                  double share,
                  const StageTarget& target,
                  std::optional<RecordPrice>& record) {
    const double before = total_.time.step_end.compute_seconds;
    add_kernel(shared_out(kernel, share), record);
    if (kernel.chunk > 0 && target.plan.parallelism.overlap_param_gather_with_optimizer_step) {
      total_.time.first_gather_ahead_seconds += total_.time.step_end.compute_seconds - before;
    }
  }

  /// A dispatch or a combine, in which all ranks of the experts meet.
  void add_dispatch(const OperatorRecord& kernel,
                    const StageTarget& target,
                    std::optional<RecordPrice>& record) const {
    const ExpertDispatch call = expert_dispatch(target.plan, target.layout, target.fabric);
    const double share = static_cast<double>(call.multiprocessors) /
                         static_cast<double>(at_->rates.gpu().multiprocessors);
    record =
        RecordPrice{.price = {.seconds = expert_dispatch_seconds(
                                  call, target.fabric, kernel.name == kCombineKernel),
                              .work_class = WorkClass::kCommunication,
                              .occupancy = {.multiprocessors = share}},
                    .issue_seconds = at_->launch.host_call_seconds,
                    .group = GroupKind::kExpertModel,
                    .axis_group = axis_group(GroupKind::kExpertModel, target.plan.parallelism)};
    use_in_sequence(*record, calls_per_part(kernel.count, kernel.direction, profile_));
  }

  WorkPrice work_price(const OperatorRecord& kernel, double seconds) const {
    WorkPrice work = {.seconds = seconds,
                      .work_class = class_of(kernel),
                      .occupancy = {.multiprocessors = 1,
                                    .memory = share_of_memory(kernel.bytes, seconds, at_->rates),
                                    .is_persistent = is_matmul(kernel) &&
                                                     has_persistent_products(at_->rates.gpu())}};
    if (at_->rates.power() == nullptr) return work;
    work.joules = joules_of(work,
                            operand_dtype(kernel, at_->compute.dtype),
                            kernel.flops,
                            at_->rates,
                            product_speed(kernel, at_->rates));
    return work;
  }

  void add_energy(const WorkPrice& work, double calls, Direction direction) {
    const bool is_often = is_per_micro_batch(direction);
    StageEnergy& energy = total_.time.energy;
    (is_often ? energy.joules_per_micro_batch : energy.joules_per_step) += calls * work.joules;
    if (!is_bound_by_arithmetic(work)) return;
    (is_often ? energy.arithmetic_seconds_per_micro_batch : energy.arithmetic_seconds_per_step) +=
        calls * work.seconds;
  }

  /// Without an order a record stands for all its calls. After each for which the host waits the
  /// GPU is idle until the next one has come.
  void use_in_sequence(RecordPrice& record, double calls) const {
    if (profile_.order) return;
    const double idle = at_->launch.wait_seconds + record.issue_seconds;
    record.price.seconds = calls * (record.price.seconds + (record.host_waits ? idle : 0));
    record.issue_seconds *= record.host_waits ? 0 : calls;
    record.host_waits = false;
  }

  /// When the host has read a value, the GPU is idle until the next call has come; under launch
  /// blocking it always is.
  void add_to_end(double seconds, double issue, bool reads_value, double calls) {
    const double idle = reads_value && !is_blocking_ ? at_->launch.wait_seconds + issue : 0;
    total_.time.step_end.compute_seconds += calls * (seconds + idle);
    issue_at_end(issue, calls);
  }

  void issue_at_end(double seconds, double calls) {
    total_.host_end_seconds += calls * (seconds + (is_blocking_ ? at_->launch.wait_seconds : 0));
  }

  void add_collective(const CollectiveRecord& record, const StageTarget& target) {
    at_->records.collectives.emplace_back();
    if (is_message(record.call.kind) && !is_ring_message(record.call)) {
      return add_message(record, target);
    }
    add_call(record, target);
  }

  void add_call(const CollectiveRecord& record, const StageTarget& target) {
    const CollectiveCall& call = record.call;
    const ParallelConfig& parallelism = target.plan.parallelism;
    const double calls = calls_per_part(record.count, record.direction, profile_);
    const double issue = at_->launch.host_call_seconds;
    WorkPrice price =
        collective_price(call, target.layout.group(call.group, rank_), at_->rates, target.fabric);
    price.joules = joules_of(price, call.dtype, 0, at_->rates);
    add_energy(price, calls, record.direction);
    if (is_gather(record)) {
      total_.gather_seconds[index_of(record.chunk)] += calls * price.seconds;
    } else if (!is_of_chunk(record.direction, record.chunk)) {
      seconds_of_axis(total_.time.step_end.communication_seconds,
                      axis_group(call.group, parallelism)) += calls * price.seconds;
      return issue_at_end(issue, calls);
    }
    if (parallelism.tp_comm_overlap) {
      price.seconds =
          at_->buffers.seconds_added(record, price.seconds, at_->compute.gpu.multiprocessors);
    }
    if (call.kind == CollectiveKind::kRecv) price.occupancy = {};  // those are of what is sent
    RecordPrice& priced = at_->records.collectives.back().emplace(
        RecordPrice{.price = price,
                    .issue_seconds = issue,
                    .group = call.group,
                    .axis_group = axis_group(call.group, parallelism),
                    .is_message = is_message(call.kind),
                    .host_waits = is_blocking_});
    use_in_sequence(priced, calls);
  }

  void add_message(const CollectiveRecord& record, const StageTarget& target) {
    if (record.call.group != GroupKind::kPipeline) return;
    const ParallelConfig& parallelism = target.plan.parallelism;
    const bool in_parts = traits_of(target.plan.training.framework).partitioned_sends &&
                          !parallelism.sequence_parallel;  // whose messages are parts already
    const int64_t parts = in_parts ? parallelism.tensor : 1;
    if (record.call.kind == CollectiveKind::kRecv) {
      if (parts > 1) add_call(gather_of_parts(record, parts), target);
      return;
    }
    (record.direction == Direction::kForward ? total_.time.send_forward_bytes
                                             : total_.time.send_backward_bytes) =
        record.call.bytes / parts;
  }

  /// Of what is played with no chunk: what the host dispatches there.
  void add_dispatches_at_end(const OrderEvents& events) {
    for (std::size_t i = 0; i < events.kind.size(); ++i) {
      if (is_of_chunk(static_cast<Direction>(events.direction[i]), events.chunk[i])) continue;
      total_.host_end_seconds +=
          static_cast<double>(events.operators[i]) * at_->launch.host_operator_seconds;
    }
  }

  bool has_order() const { return profile_.order.has_value(); }

  ChunkPlayer& player_of(int64_t chunk, const HostWaits& waits) {
    const auto known = std::find_if(players_.begin(), players_.end(), [&](const auto& player) {
      return player.plays(chunk, waits);
    });
    if (known != players_.end()) return *known;
    return players_.emplace_back(order_, at_->records, chunk, waits);
  }

  void replay_chunks(const StageRecords& records, const StageTarget& target) {
    const HostWaits waits = host_waits(target.plan, at_->launch, has_order());
    for (std::size_t c = 0; c < total_.time.chunks.size(); ++c) {
      const ChunkReplay time =
          player_of(static_cast<int64_t>(c), waits).play(at_->records, target.keep_works);
      total_.time.chunks[c] = {.forward = time.forward,
                               .backward = time.backward,
                               .gathers = time.gathers,
                               .reduction = time.reduction};
      if (time.gathers.seconds == 0) total_.time.gather_seconds += total_.gather_seconds[c];
      if (c == 0) add_to_first(time.first_added_seconds, waits);
      if (target.keep_works) add_shown(c, time.works);
    }
    if (target.plan.parallelism.overlap_moe_expert_parallel_comm) {
      replay_pairs(records, target, waits);
    }
    if (target.keep_works) add_memory_before();
  }

  void replay_pairs(const StageRecords& records,
                    const StageTarget& target,
                    const HostWaits& waits) {
    for (const ChunkPair& pair : pairs_of(schedule_shape(target.plan), records.stage)) {
      total_.time.chunks[index_of(pair.forward_chunk)].pairs[pair.backward_chunk] =
          player_of(pair, waits, target.plan).play(at_->records);
    }
  }

  PairPlayer& player_of(const ChunkPair& pair, const HostWaits& waits, const Plan& plan) {
    const auto known = std::find_if(pairs_.begin(), pairs_.end(), [&](const auto& player) {
      return player.plays(pair, waits);
    });
    if (known != pairs_.end()) return *known;
    return pairs_.emplace_back(
        order_, at_->records, pair, waits, plan.parallelism.ep_overlap_early_attn_memory_release);
  }

  void add_shown(std::size_t chunk, const std::vector<MicroBatchWork>& works) {
    for (const MicroBatchWork& work : works) {
      total_.time.chunks[chunk].works.push_back(shown_work(profile_, order_, work));
    }
    add_memory(chunk, works);
  }

  void add_memory(std::size_t chunk, const std::vector<MicroBatchWork>& works) {
    for (const PartMemory& part : order_.memory) {
      if (index_of(part.chunk) != chunk) continue;
      ChunkTime& time = total_.time.chunks[chunk];
      (part.is_forward ? time.forward_memory : time.backward_memory) =
          memory_change(order_.events, part, works);
    }
  }

  void add_memory_before() {
    const auto phase =
        std::find_if(profile_.phases.rbegin(), profile_.phases.rend(), [](const auto& record) {
          return record.name.ends_with(".forward_backward");
        });
    if (phase != profile_.phases.rend()) {
      total_.time.allocated_before_bytes = phase->before.allocated_bytes;
    }
  }

  void add_to_first(double seconds, const HostWaits& waits) {
    PartTime& first = total_.time.first_added;
    (waits.before_step ? first.compute_seconds : first.communication_seconds.data) = seconds;
  }

  /// The host works ahead of the GPU as long as it can; under launch blocking they take turns.
  void wait_for_host() {
    PartTime& gpu = total_.time.step_end;
    const double beside = is_blocking_ ? 0 : gpu.total_seconds();
    gpu.compute_seconds += std::max(0.0, total_.host_end_seconds - beside);
  }

  /// What stays on the GPU is updated there while the host works.
  void add_offload(const HostMemoryRecord& host, const Plan& plan) {
    StageTime& time = total_.time;
    time.offload =
        offload_time(host.pieces, host_share(plan), plan.training.overlap_cpu_optimizer_d2h_h2d);
    const double beside = std::min(total_.device_update_seconds, time.offload->update_seconds);
    time.step_end.compute_seconds += time.offload->total_seconds - beside;
  }

  /// The place of a chunk in the lists of chunks.
  std::size_t index_of(int64_t chunk) const {
    return std::min(static_cast<std::size_t>(std::max<int64_t>(0, chunk)),
                    total_.time.chunks.size() - 1);
  }

  const RankProfile& profile_;
  const std::optional<StepOrder> made_order_;
  const StepOrder& order_;
  std::deque<Kernels> kernels_;
  std::vector<ChunkPlayer> players_;
  std::vector<PairPlayer> pairs_;
  int64_t rank_ = 0;
  bool is_blocking_ = false;
  Kernels* at_ = nullptr;  // those of the target
  Total total_;
};

StagePricer::StagePricer(const RankProfile& profile) : sum_(std::make_unique<Sum>(profile)) {}
StagePricer::~StagePricer() = default;
StagePricer::StagePricer(StagePricer&&) noexcept = default;

StageTime StagePricer::time(const StageRecords& records, const StageTarget& target) {
  return sum_->time(records, target);
}

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

double StageTime::gathers_begin_seconds(std::size_t chunk) const {
  double begin = -first_gather_ahead_seconds;
  for (std::size_t c = 0; c < chunk; ++c) begin = std::max(0.0, begin + chunks[c].gathers.seconds);
  return begin;
}

StageTime stage_time(const RankProfile& profile, const StageTarget& target) {
  return StagePricer(profile).time({.rank = profile.rank,
                                    .stage = profile.coordinate.pipeline,
                                    .chunks = target.plan.parallelism.virtual_stages,
                                    .collectives = profile.collectives},
                                   target);
}

}  // namespace estimator
