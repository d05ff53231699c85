#include "sim/rank/rank_run.h"

#include <c10/util/Exception.h>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <memory>
#include <string>

#include "comm_stub/stub_backend.h"
#include "estimator/base/fields.h"
#include "estimator/plan/frameworks.h"
#include "estimator/plan/parallel_layout.h"
#include "estimator/schedule/pipeline_schedule.h"
#include "models/pipeline/trainer.h"
#include "sim/rank/rank_device.h"
#include "sim/recording/counting_cpu_allocator.h"
#include "sim/recording/recorder.h"
#include "sim/tracking/attribution.h"
#include "sim/tracking/device_record.h"
#include "sim/tracking/torch_version.h"

namespace sim {
namespace {

using estimator::CollectiveCall;
using estimator::GroupKind;
using estimator::Plan;
using estimator::RankProfile;

constexpr int64_t kIterations = 2;  // the second one has optimizer state: it is the one that counts

estimator::MicroBatchRecord micro_batches(const Plan& plan, int64_t stage, bool all) {
  const estimator::ScheduleShape shape = estimator::schedule_shape(plan);
  return {
      .total = shape.micro_batches,
      .executed = all ? shape.micro_batches : estimator::micro_batches_to_execute(shape, stage)};
}

std::vector<int64_t> members_of(const estimator::RankGroup& group) {
  std::vector<int64_t> members;
  for (int64_t index = 0; index < group.size(); ++index) members.push_back(group.member(index));
  return members;
}

/// What the stub needs in order to write values is none of the shard's time, nor of its memory on
/// the CPU.
comm_stub::StubOptions stub_options(estimator::DeviceKind device, Recorder& recorder) {
  const auto not_counted = std::make_shared<std::optional<NotCounted>>();
  return {.write_values = device != estimator::DeviceKind::kVirtual,
          .on_tensor = [&recorder](const at::Tensor& tensor) { recorder.on_communicated(tensor); },
          .on_begun = [&recorder](GroupKind group) -> std::function<void()> {
            return [&recorder, end = recorder.end_of_last_call(group)] {
              recorder.wait_for_point(end);
            };
          },
          .on_writing =
              [&recorder, not_counted](bool writing) {
                if (writing) {
                  recorder.stop_clock();
                  not_counted->emplace();
                } else {
                  not_counted->reset();
                  recorder.continue_clock();
                }
              }};
}

models::Collectives collectives_of(const Plan& plan, GroupKind group) {
  const bool is_functional = group == GroupKind::kTensor &&
                             estimator::traits_of(plan.training.framework).functional_collectives;
  return is_functional ? models::Collectives::kFunctional : models::Collectives::kDistributed;
}

models::ProcessGroups process_groups(const Plan& plan,
                                     int64_t rank,
                                     estimator::DeviceKind device,
                                     Recorder& recorder,
                                     const RankRunHooks& hooks) {
  const estimator::ParallelLayout layout(plan.parallelism);
  std::vector<GroupKind> kinds;
  kinds.reserve(models::kGroupsOfKinds.size());
  for (const models::GroupOfKind& each : models::kGroupsOfKinds) kinds.push_back(each.kind);
  const estimator::GroupCallSink sink = [&recorder, &hooks](const estimator::GroupCall& made) {
    recorder.on_collective(made.call);
    if (hooks.on_call) hooks.on_call({.phase = recorder.running_phase(), .made = made});
  };
  // Members are listed only for who asks: a group may be as large as the world.
  const comm_stub::CallSink stub_sink = [=, listed = hooks.on_call != nullptr](
                                            const CollectiveCall& call) {
    sink({.call = call,
          .members = listed ? members_of(layout.group(call.group, rank)) : std::vector<int64_t>{}});
  };
  const comm_stub::StubGroups backends =
      hooks.make_groups ? hooks.make_groups(layout, kinds, sink)
                        : comm_stub::make_stub_groups(
                              layout, rank, kinds, stub_sink, stub_options(device, recorder));
  models::ProcessGroups groups;
  for (const auto& [kind, group] : models::kGroupsOfKinds) {
    const auto found = backends.find(kind);
    if (found == backends.end()) continue;
    groups.*group =
        std::make_shared<models::Communicator>(found->second, collectives_of(plan, kind));
  }
  return groups;
}

/// The virtual GPU's tensors have no values, so the host has nothing to compute with.
models::OptimizerSettings optimizer_settings(const Plan& plan,
                                             estimator::DeviceKind device,
                                             const RankRunHooks& hooks) {
  models::OptimizerSettings settings = hooks.optimizer.value_or(models::default_optimizer(plan));
  if (settings.offload) settings.offload->values = device != estimator::DeviceKind::kVirtual;
  return settings;
}

estimator::PeakSnapshotHeader snapshot_header(const RankProfile& profile, const Plan& plan) {
  const estimator::ParallelConfig& parallelism = plan.parallelism;
  return {.tool = profile.tool,
          .plan = plan.name,
          .rank = profile.rank,
          .world_size = profile.world_size,
          .layout = {.tensor = parallelism.tensor,
                     .context = parallelism.context,
                     .expert = parallelism.expert,
                     .data = plan.data_parallel_size(),
                     .pipeline = parallelism.pipeline},
          .coordinate = profile.coordinate,
          .device = profile.device,
          .peak = profile.peak};
}

ForEachMemoryFile<std::string> memory_files(const Recorder& recorder,
                                            const ForEachMemoryFile<bool>& wanted,
                                            estimator::PeakSnapshotHeader header) {
  ForEachMemoryFile<std::string> files;
  if (wanted[kMemoryHistory]) files[kMemoryHistory] = recorder.memory_history(to_json(header));
  if (wanted[kTimeline]) files[kTimeline] = recorder.timeline();
  if (wanted[kPeakSnapshot]) {
    auto allocations = recorder.peak_allocations();
    header.allocations = static_cast<int64_t>(allocations.size());
    files[kPeakSnapshot] = estimator::to_json_lines({header, std::move(allocations)});
  }
  return files;
}

template <class Work>
void in_phase(Recorder& recorder, const std::string& name, const Work& work) {
  recorder.begin_phase(name);
  work();
  recorder.end_phase();
}

void run_phases(Recorder& recorder,
                models::Trainer& trainer,
                const RankRunHooks& hooks,
                bool record_throughout) {
  if (record_throughout) recorder.start_recording();
  in_phase(recorder, "build_model", [&] { trainer.build_model(); });
  in_phase(recorder, "build_optimizer", [&] { trainer.build_optimizer(); });
  for (int64_t iteration = 0; iteration < kIterations; ++iteration) {
    const std::string prefix = "iteration_" + std::to_string(iteration) + ".";
    if (iteration == kIterations - 1 && !record_throughout) recorder.start_recording();
    in_phase(recorder, prefix + "forward_backward", [&] { trainer.forward_backward(iteration); });
    if (hooks.before_step) hooks.before_step(iteration, trainer);
    const bool whole_at_end = hooks.at_end && iteration == kIterations - 1;
    in_phase(recorder, prefix + "optimizer_step", [&] {
      trainer.optimizer_step();
      if (whole_at_end) trainer.finish_gathers();
    });
    if (whole_at_end) hooks.at_end(trainer);
  }
  recorder.stop_recording();
}

}  // namespace

RankRunResult run_rank(const Plan& plan,
                       int64_t rank,
                       const RankRunOptions& options,
                       const RankRunHooks& hooks) {
  const estimator::ParallelLayout layout(plan.parallelism);
  const Determinism determinism(plan.training);
  RankProfile profile;
  profile.tool = {.version = ONERANK_VERSION, .torch = torch_version()};
  profile.plan = estimator::to_json(plan);
  profile.rank = rank;
  profile.world_size = plan.world_size();
  profile.coordinate = layout.coordinate(rank);
  profile.device = device_record(options.device);
  profile.device.allocator = plan.memory.allocator;
  profile.micro_batches =
      micro_batches(plan, profile.coordinate.pipeline, options.all_micro_batches);

  const auto memory = make_memory_reader(options.device);
  Recorder recorder(
      {.memory = *memory,
       .attribute_memory = options.attribute_memory,
       .keep_history = options.memory_files[kMemoryHistory] || options.memory_files[kTimeline],
       .take_stacks = options.take_stacks});
  models::Trainer trainer({.plan = plan,
                           .coordinate = profile.coordinate,
                           .groups = process_groups(plan, rank, options.device, recorder, hooks),
                           .device = torch_device(options.device),
                           .observer = recorder,
                           .device_computes = options.device != estimator::DeviceKind::kVirtual},
                          profile.micro_batches.executed,
                          optimizer_settings(plan, options.device, hooks));
  try {
    run_phases(recorder, trainer, hooks, options.record_throughout);
  } catch (const c10::OutOfMemoryError& error) {
    return recorder.out_of_memory(profile.device.total_bytes, error.what_without_backtrace());
  }
  profile.parameters = trainer.stage().parameters().record();
  profile.model_state = trainer.model_state();
  profile.host_memory = trainer.host_memory();
  recorder.finish(profile);
  check_attribution(profile.peak);
  auto files = memory_files(recorder, options.memory_files, snapshot_header(profile, plan));
  return FinishedRank{.profile = std::move(profile), .memory_files = std::move(files)};
}

}  // namespace sim
