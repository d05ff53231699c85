#include "sim/exec/program_recorder.h"

#include <ATen/Context.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>
#include <utility>

#include "estimator/files.h"
#include "sim/exec/count_reads.h"
#include "sim/exec/program_callbacks.h"
#include "sim/exec/program_end.h"
#include "sim/rank/torch_version.h"
#include "sim/tracking/operator_record.h"

namespace sim {
namespace {

using estimator::Direction;
using estimator::PhaseRecord;
using estimator::ProgramRecord;
using estimator::RankProfile;

/// Operators that run on this thread, outermost first.
thread_local std::vector<const char*> running_operators;
/// The innermost of them reads counts.
thread_local bool counts_are_read = false;

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : name;
}

/// The process group whose collective this thread is in, or null.
const torch::ParamCommsDebugInfo* calling_group() {
  return static_cast<torch::ParamCommsDebugInfo*>(
      c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PARAM_COMMS_INFO));
}

bool is_step(const std::string& phase) { return phase.ends_with(".optimizer_step"); }

/// Of equal peaks the last, as in the profile of a plan's rank.
estimator::PeakRecord peak_of(const std::vector<PhaseRecord>& phases) {
  estimator::PeakRecord record;
  for (const PhaseRecord& phase : phases) {
    record.reserved_bytes = std::max(record.reserved_bytes, phase.peak.reserved_bytes);
    if (phase.peak.allocated_bytes < record.allocated_bytes) continue;
    record.allocated_bytes = phase.peak.allocated_bytes;
    record.phase = phase.name;
  }
  return record;
}

std::vector<estimator::KernelRecord> kernel_records(const VirtualGpu& gpu) {
  std::map<std::string, int64_t> launches;
  gpu.visit_kernels(
      [](const char* name, uint64_t count, void* context) {
        (*static_cast<std::map<std::string, int64_t>*>(context))[demangled(name)] +=
            static_cast<int64_t>(count);
      },
      &launches);
  std::vector<estimator::KernelRecord> records;
  for (const auto& [name, count] : launches) records.push_back({name, count});
  return records;
}

std::vector<estimator::GemmRecord> gemm_records(const VirtualGpu& gpu) {
  std::vector<estimator::GemmRecord> records;
  gpu.visit_gemms(
      [](const onerank_virtual_gpu_gemm* gemm, void* context) {
        static_cast<std::vector<estimator::GemmRecord>*>(context)->push_back(
            {gemm->m, gemm->n, gemm->k, gemm->batch, static_cast<int64_t>(gemm->count)});
      },
      &records);
  return records;
}

}  // namespace

ProgramRecorder::ProgramRecorder(ExecSettings settings)
    : settings_(std::move(settings)),
      process_(getpid()),
      gpu_(find_virtual_gpu()),
      memory_(static_cast<c10::DeviceIndex>(settings_.local_rank),
              [this](const AllocatorFollower::Entry& entry) { memory_changes(entry); }),
      tracker_({.attribute_memory = false}),
      phases_(std::chrono::steady_clock::now()) {}

void ProgramRecorder::start() {
  install_program_callbacks(*this);
  using SetHost = decltype(&onerank_nccl_set_host);
  const auto set_host = reinterpret_cast<SetHost>(dlsym(RTLD_DEFAULT, "onerank_nccl_set_host"));
  if (set_host != nullptr) {
    set_host([](const onerank_nccl_call* call,
                void* self) { static_cast<ProgramRecorder*>(self)->collective_called(*call); },
             [](void*) {
               const auto* group = calling_group();
               return group == nullptr ? 0 : group->getWorldSize();
             },
             this);
  }
  if (!gpu_) return;
  // torch would prefer it on capability 9.0 and 10.0, but its workspaces are not public.
  at::globalContext().setSDPUseCuDNN(false);
  gpu_.remember_values();
  gpu_.set_invention_sink(
      [](uint64_t bytes, void* self) {
        static_cast<ProgramRecorder*>(self)->value_invented(static_cast<int64_t>(bytes));
      },
      this);
}

void ProgramRecorder::operator_started(const at::RecordFunction& function) {
  running_operators.push_back(function.name());
  counts_are_read = reads_counts(function);
  memory_.attach();
  try {
    tracker_.operator_started(function);
  } catch (...) {
    tracker_.keep_error(std::current_exception());
  }
}

void ProgramRecorder::operator_finished(const at::RecordFunction& function) {
  if (!running_operators.empty()) running_operators.pop_back();
  counts_are_read = false;
  try {
    tracker_.operator_finished(function);
  } catch (...) {
    tracker_.keep_error(std::current_exception());
  }
}

void ProgramRecorder::node_started(const at::RecordFunction& node) {
  tracker_.node_started(node);
  {
    const std::lock_guard lock(mutex_);
    const bool is_first = !phases_.has_backward_since_step();
    phases_.backward_ran();
    if (!is_first || stopped_ || settings_.steps == 0 || phases_.iteration() < settings_.steps) {
      return;
    }
    stopped_ = true;
  }
  finish();
  end_program();
}

void ProgramRecorder::node_finished() { tracker_.node_finished(); }

void ProgramRecorder::optimizer_made() {
  const Boundary here = boundary();
  const std::lock_guard lock(mutex_);
  phases_.optimizer_made(here);
  phase_changed();
}

void ProgramRecorder::step_started() {
  const Boundary here = boundary();
  const std::lock_guard lock(mutex_);
  if (step_depth_++ > 0) return;
  phases_.step_started(here);
  phase_changed();
}

void ProgramRecorder::step_finished() {
  const Boundary here = boundary();
  const std::lock_guard lock(mutex_);
  if (--step_depth_ > 0) return;
  phases_.step_finished(here);
  phase_changed();
}

/// Operators are recorded in one iteration, whose first-time costs are behind it.
void ProgramRecorder::phase_changed() {
  const bool record =
      phases_.iteration() == recorded_iteration() && phases_.running().starts_with("iteration_");
  if (record != recording_) tracker_.set_recording(record);
  recording_ = record;
  const bool in_step = is_step(phases_.running());
  tracker_.begin_phase(in_step ? 1 : 0, in_step ? Direction::kOptimizerStep : Direction::kForward);
}

Boundary ProgramRecorder::boundary() {
  return {.now = memory_.current(),
          .peak = memory_.take_peak(),
          .time = std::chrono::steady_clock::now()};
}

/// What was in memory that is given out, or back, is not its new owner's.
void ProgramRecorder::memory_changes(const AllocatorFollower::Entry& entry) {
  if (!gpu_ || entry.action_ != AllocatorFollower::Entry::ALLOC) return;
  gpu_.forget(reinterpret_cast<const void*>(entry.addr_), entry.size_, UINT64_MAX);
}

void ProgramRecorder::collective_called(const onerank_nccl_call& call) {
  const std::lock_guard lock(mutex_);
  auto& communicator = communicators_[call.communicator];
  communicator.name = call.communicator_name;
  communicator.size = call.size;
  communicator.rank = call.rank;
  if (const auto* group = calling_group()) {
    communicator.name = group->getProcessGroupDesc();
    communicator.first_rank = group->getGlobalRankStart();
    communicator.rank_stride = group->getGlobalRankStride();
  }
  CallCount& count = calls_[{
      call.communicator, call.kind, call.dtype, static_cast<int64_t>(call.bytes), call.peer}];
  ++count.total;
  if (recording_) ++count.in_iteration;
}

void ProgramRecorder::value_invented(int64_t bytes) {
  const std::string reader = running_operators.empty() ? "" : running_operators.front();
  const bool is_count = counts_are_read || is_sized_by_values(running_operators);
  if (is_count && !settings_.accept_invented_counts) {
    not_answered(fmt::format(
        "counts that only kernels would know ({} in {}; such as the tokens of each expert)",
        reader,
        phases_.running()));
  }
  const std::lock_guard lock(mutex_);
  ++invented_reads_[{reader, phases_.running(), bytes}];
}

void ProgramRecorder::not_answered(const std::string& what) {
  const std::lock_guard lock(mutex_);
  const bool is_new = std::find(unanswered_.begin(), unanswered_.end(), what) == unanswered_.end();
  if (is_new) unanswered_.push_back(what);
}

void ProgramRecorder::finish() {
  if (getpid() != process_) return;
  {
    const std::lock_guard lock(mutex_);
    if (finished_) return;
    finished_ = true;
  }
  try {
    const RankProfile result = profile();
    const std::string path =
        settings_.output_folder + "/" + estimator::profile_file_name(settings_.rank);
    estimator::write_file_whole(path, estimator::to_json(result).dump(1) + "\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
}

RankProfile ProgramRecorder::profile() {
  const Boundary here = boundary();
  const std::lock_guard lock(mutex_);
  tracker_.set_recording(false);
  RankProfile profile;
  profile.tool = {.version = settings_.version, .torch = torch_version()};
  profile.plan = estimator::Json::object();
  profile.rank = settings_.rank;
  profile.world_size = settings_.world_size;
  profile.device = settings_.device;
  profile.limit_lifted = settings_.limit_lifted;
  profile.micro_batches = {.total = 1, .executed = 1};
  profile.phases = stopped_ ? phases_.completed() : phases_.finished(here);
  profile.peak = peak_of(profile.phases);
  if (const auto failure = memory_.first_failure()) {
    profile.out_of_memory = {.phase = phases_.running(),
                             .message = fmt::format("{} bytes were asked for, {} were free",
                                                    failure->requested_bytes,
                                                    failure->free_bytes)};
  }
  for (const auto& entry : tracker_.operators().entries()) {
    profile.operators.push_back(operator_record(
        *entry.item, entry.item->phase == 1 ? "optimizer_step" : "forward_backward", entry.count));
  }
  profile.program = program_record();
  for (const auto& op : profile.operators) {
    if (op.name.find("_attention") == std::string::npos) continue;
    auto& names = profile.program->attention;
    if (std::find(names.begin(), names.end(), op.name) == names.end()) names.push_back(op.name);
  }
  return profile;
}

ProgramRecord ProgramRecorder::program_record() const {
  ProgramRecord record;
  record.command = settings_.command;
  record.gpus_per_node = settings_.gpus_per_node;
  record.optimizer_steps = phases_.iteration();
  record.recorded_iteration = recorded_iteration();
  record.stopped_by_steps = stopped_;
  record.communicators = communicator_records();
  if (gpu_) {
    record.kernels = kernel_records(gpu_);
    record.gemms = gemm_records(gpu_);
  }
  record.unanswered = unanswered_;
  for (const auto& [key, count] : invented_reads_) {
    const auto& [reader, phase, bytes] = key;
    record.invented_reads.push_back({reader, phase, bytes, count});
  }
  return record;
}

std::vector<estimator::CommunicatorRecord> ProgramRecorder::communicator_records() const {
  auto communicators = communicators_;
  for (const auto& [key, count] : calls_) {
    communicators.at(key.communicator)
        .calls.push_back(
            {key.kind, key.dtype, key.bytes, key.peer, count.total, count.in_iteration});
  }
  std::vector<estimator::CommunicatorRecord> records;
  for (auto& [number, communicator] : communicators) records.push_back(std::move(communicator));
  return records;
}

}  // namespace sim
