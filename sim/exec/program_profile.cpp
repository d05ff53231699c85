// What a ProgramRecorder writes: the profile of its rank, and the memory files.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <numeric>
#include <utility>

#include "estimator/base/contains.h"
#include "estimator/base/document.h"
#include "estimator/base/fields.h"
#include "estimator/base/files.h"
#include "estimator/profile/product_operators.h"
#include "sim/exec/memory_report.h"
#include "sim/exec/messages/absent_answers.h"
#include "sim/exec/program_recorder.h"
#include "sim/exec/trace/launched_kernels.h"
#include "sim/tracking/attribution.h"
#include "sim/tracking/operator_call.h"
#include "sim/tracking/torch_version.h"

namespace sim {
namespace {

using estimator::ProgramRecord;
using estimator::RankProfile;

estimator::ParametersRecord sum_of(const std::vector<estimator::ParameterRecord>& parameters) {
  estimator::ParametersRecord record{.tensors = parameters};
  for (const estimator::ParameterRecord& parameter : parameters) {
    record.count += std::accumulate(
        parameter.shape.begin(), parameter.shape.end(), int64_t{1}, std::multiplies<int64_t>());
    record.bytes += parameter.bytes;
  }
  return record;
}

}  // namespace

void ProgramRecorder::finish() {
  if (getpid() != process_) return;
  {
    const std::lock_guard lock(mutex_);
    if (finished_) return;
    finished_ = true;
  }
  try {
    const RankProfile result = profile();
    write_memory_files(result);
    estimator::write_file_whole((folder_ / kProcessProfile).string(),
                                estimator::document_text(result));
  } catch (const std::exception& error) {
    std::ofstream(folder_ / kInternalError) << error.what();
  }
}

void ProgramRecorder::write_memory_files(const RankProfile& profile) {
  const std::lock_guard lock(mutex_);
  const ProgramParts parts = this->parts();
  const Peak most = peaks_.largest(parts, stopped_);
  tracker_.locked([&](const TrackedRun& run) {
    sim::write_memory_files(settings_, folder_, profile, run, parts.phases, most.allocations);
  });
}

std::vector<std::string> ProgramRecorder::phase_names() const {
  return sim::phase_names(phases_.finished({}));
}

ProgramParts ProgramRecorder::parts() const {
  return {.phases = phase_names(), .parameters = sum_of(parameters_)};
}

/// A process that nobody has told of its world has at least that of its communicators.
ProgramRecorder::Rank ProgramRecorder::rank_in(
    const std::vector<estimator::CommunicatorRecord>& communicators) const {
  Rank rank = rank_;
  for (const estimator::CommunicatorRecord& communicator : communicators) {
    if (communicator.size <= rank.world_size) continue;
    rank = {.rank = communicator.rank, .world_size = communicator.size};
  }
  return rank;
}

RankProfile ProgramRecorder::profile() {
  const Boundary here = boundary();
  const std::lock_guard lock(mutex_);
  tracker_.set_recording(false);
  tracker_.end_phase();
  tracker_.throw_if_failed();
  RankProfile profile;
  profile.tool = {.version = settings_.version, .torch = torch_version()};
  profile.plan = estimator::Json::object();
  const ProgramParts parts = this->parts();
  const RecordedIteration::Result recorded = recorded_.result(phases_.iteration(), parts.phases);
  profile.program = program_record(recorded);
  const Rank rank = rank_in(profile.program->communicators);
  profile.rank = rank.rank;
  profile.world_size = rank.world_size;
  find_device();
  profile.device = device_;
  profile.limit_lifted = settings_.limit_lifted;
  profile.micro_batches = {.total = 1, .executed = 1};
  profile.parameters = parts.parameters;
  profile.allocator = memory_.allocator_record();
  profile.phases = stopped_ ? phases_.completed() : phases_.finished(here);
  profile.peak = peaks_.largest_of(profile.phases);
  Peak most = peaks_.largest(parts, stopped_);
  describe_peak(most.allocations, profile.peak);
  check_attribution(profile.peak);
  profile.modules = std::move(most.modules);
  profile.program->other_libraries_bytes =
      peaks_.other_libraries_bytes(most, largest_peak(profile.phases));
  profile.out_of_memory = peaks_.out_of_memory(parts.phases);
  if (gpu_) profile.trace = recorded.trace;  // a real GPU's kernels are not seen
  if (profile.trace) {
    for (estimator::TraceWork& work : profile.trace->works) {
      if (work.communicator >= 0) work.communicator = collectives_.place_of(work.communicator);
    }
  }
  profile.operators = recorded.operators;
  for (const auto& op : profile.operators) {
    if (!estimator::is_attention(op.name)) continue;
    auto& names = profile.program->attention;
    if (!estimator::contains(names, op.name)) names.push_back(op.name);
  }
  return profile;
}

ProgramRecord ProgramRecorder::program_record(const RecordedIteration::Result& recorded) const {
  ProgramRecord record;
  record.command = settings_.command;
  record.recorded = settings_.record;
  record.device_index = memory_.device();
  record.other_devices = memory_.other_devices();
  record.backward_devices = memory_.backward_devices();
  record.product_devices = trace_.product_devices();
  if (gpu_) record.outside_bytes = static_cast<int64_t>(gpu_.outside_bytes());
  record.gpus_per_node = settings_.gpus_per_node;
  record.optimizer_steps = phases_.iteration();
  record.caught_failures = peaks_.caught_failures();
  record.recorded_iteration = recorded.iteration;
  record.recorded_with =
      recorded_with(recorded.facts, captured_steps_.has_graphs(), !record.backward_devices.empty());
  record.stopped_by_steps = stopped_;
  record.events = settings_.events;
  record.communicators = collectives_.records(recorded.collectives);
  record.joins_world = joins_world_ || !record.communicators.empty();
  if (gpu_) {
    record.kernels = kernel_records(gpu_);
    record.gemms = gemm_records(gpu_);
  }
  record.unanswered = unanswered_;
  record.assumed = assumptions_.records();
  record.absent_answers = absent_answers();
  record.has_timed_events = trace_.is_clocked();
  record.tuned = tuned_;
  for (const auto& [key, count] : invented_reads_) {
    const auto& [reader, phase, bytes] = key;
    record.invented_reads.push_back({reader, phase, bytes, count});
  }
  return record;
}

}  // namespace sim
