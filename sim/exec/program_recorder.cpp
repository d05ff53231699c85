#include "sim/exec/program_recorder.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <numeric>
#include <string_view>
#include <utility>

#include "estimator/base/document.h"
#include "estimator/base/files.h"
#include "estimator/base/units.h"
#include "estimator/profile/own_limit.h"
#include "estimator/profile/products.h"
#include "sim/exec/absent_answers.h"
#include "sim/exec/barriers.h"
#include "sim/exec/count_reads.h"
#include "sim/exec/launched_kernels.h"
#include "sim/exec/memory_report.h"
#include "sim/exec/program_callbacks.h"
#include "sim/exec/program_device.h"
#include "sim/exec/python.h"
#include "sim/tracking/attribution.h"
#include "sim/tracking/operator_call.h"
#include "sim/tracking/torch_version.h"

namespace sim {
namespace {

using estimator::Direction;
using estimator::PhaseRecord;
using estimator::ProgramRecord;
using estimator::RankProfile;

struct RunningOperator {
  const char* name;
  bool is_sized_by_values;
};
/// On this thread, outermost first.
thread_local std::vector<RunningOperator> running_operators;
/// The innermost of them reads counts.
thread_local bool counts_are_read = false;
/// What the last operator that may read counts reads them from.
thread_local std::string counted_tensor;

/// Whether what runs makes a tensor whose size is a matter of values on the device.
bool sizes_by_values() {
  return std::any_of(running_operators.begin(),
                     running_operators.end(),
                     [](const RunningOperator& op) { return op.is_sized_by_values; });
}

/// Whether what runs are PyTorch's own kernels: what they write follows from their operator.
bool runs_own_kernels() {
  return !running_operators.empty() &&
         std::string_view(running_operators.back().name).starts_with("aten::");
}

bool is_step(const std::string& phase) { return phase.ends_with(".optimizer_step"); }

/// Of a program without modules, the first forward is in the phase before.
bool is_of_iteration(const std::string& phase) {
  return phase.starts_with("iteration_") || phase == "build_optimizer";
}

Direction direction_of(const std::string& phase) {
  if (!is_of_iteration(phase)) return Direction::kReduceGradients;  // of no micro-batch
  return is_step(phase) ? Direction::kOptimizerStep : Direction::kForward;
}

estimator::MemoryCategory category_named(std::string_view name) {
  for (const auto& known : enum_names(estimator::MemoryCategory{})) {
    if (name == known.name) return known.value;
  }
  throw std::logic_error(fmt::format("the observer tells of memory for {}", name));
}

/// A launcher of the program's own may have set it for this process.
int64_t number_of(const char* variable, int64_t otherwise) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return otherwise;
  char* end = nullptr;
  const int64_t value = std::strtoll(text, &end, 10);
  return end != text && *end == '\0' && value >= 0 ? value : otherwise;
}

/// That of the first one before any was used.
int device_index(const AllocatorFollower& memory) { return std::max(0, memory.device()); }

int64_t bytes_of(const std::vector<estimator::PeakAllocation>& allocations) {
  return std::accumulate(
      allocations.begin(), allocations.end(), int64_t{0}, [](int64_t sum, const auto& block) {
        return sum + block.bytes;
      });
}

estimator::LastingMemory lasting_memory(const char* category, const std::string& parameter) {
  const auto kind = category_named(category);
  const bool is_of_optimizer = kind == estimator::MemoryCategory::kOptimizerState ||
                               kind == estimator::MemoryCategory::kMasterWeight;
  const size_t dot = parameter.rfind('.');
  const std::string module = dot == std::string::npos ? "" : parameter.substr(0, dot);
  return {.category = kind, .owner = is_of_optimizer ? "optimizer" : module, .name = parameter};
}

}  // namespace

ProgramRecorder::ProgramRecorder(ExecSettings settings, const std::filesystem::path& folder)
    : settings_(std::move(settings)),
      process_(getpid()),
      folder_(folder / std::to_string(process_)),
      gpu_(settings_.device.kind == estimator::DeviceKind::kVirtual
               ? find_virtual_gpu(settings_.assumed.fullest_expert ? kLargestRoutingBytes
                                                                   : kLargestTokenBytes)
               : VirtualGpu{}),
      device_(settings_.device),
      tracker_({.keep_history = wants_history(settings_),
                .directions_are_announced = false,
                .read_integers =
                    [this](const at::Tensor& tensor) { return known_integers(tensor, gpu_); }}),
      memory_(tracker_, [this](const AllocatorFollower::Entry& entry) { memory_changes(entry); }),
      trace_(tracker_),
      assumptions_(settings_.assumed),
      phases_(std::chrono::steady_clock::now()),
      rank_{.rank = number_of("RANK", settings_.rank),
            .world_size = number_of("WORLD_SIZE", settings_.world_size)} {
  std::filesystem::create_directories(folder_);
  tracker_.begin_phase(0, direction_of(phases_.running()));
}

void ProgramRecorder::start(const std::filesystem::path& library) {
  if (settings_.record) {
    install_program_callbacks(*this);
    run_script_soon((library.parent_path() / "observe.py").string(),
                    {{"recorder_path", library.string()}});
  }
  using SetHost = decltype(&onerank_nccl_set_host);
  const auto set_host = reinterpret_cast<SetHost>(dlsym(RTLD_DEFAULT, "onerank_nccl_set_host"));
  if (set_host != nullptr) {
    set_host([](const onerank_nccl_call* call,
                void* self) { static_cast<ProgramRecorder*>(self)->collective_called(*call); },
             [](void* self) { static_cast<ProgramRecorder*>(self)->trace_.nccl_answered(); },
             [](void*) { return calling_group_size(); },
             this);
  }
  if (!gpu_) {
    using SetReal = decltype(&onerank_nccl_set_memory_is_real);
    const auto set_real =
        reinterpret_cast<SetReal>(dlsym(RTLD_DEFAULT, "onerank_nccl_set_memory_is_real"));
    if (set_real != nullptr) set_real(1);
    return;
  }
  if (!settings_.record) return;
  gpu_.remember_values(std::max(kLargestControlBytes, gpu_.largest_bytes));
  gpu_.set_invention_sink(
      [](const void* address, uint64_t bytes, void* self) {
        static_cast<ProgramRecorder*>(self)->value_invented(address, static_cast<int64_t>(bytes));
      },
      this);
  gpu_.set_event_sink([](const onerank_virtual_gpu_event* event,
                         void* self) { static_cast<ProgramRecorder*>(self)->device_event(*event); },
                      this);
  // What PyTorch's own kernels read and write is known from their operator.
  gpu_.ask_for_arguments([](void*) { return runs_own_kernels() ? 0 : 1; }, nullptr);
}

void ProgramRecorder::operator_started(const at::RecordFunction& function,
                                       const OperatorFacts& facts) {
  if (facts.may_read_messages) settle_messages();
  running_operators.push_back({function.name(), facts.is_sized_by_values});
  counts_are_read = facts.is_copy && reads_counts(function);
  if (counts_are_read || facts.is_sized_by_values) counted_tensor = counted_tensor_text(function);
  memory_.attach();
  memory_.settle();
  if (memory_.count_failures() > seen_failures_) went_on_after_failure();
  tell_tracker([&] { trace_.operator_started(function, *facts.traits); });
  if (facts.gathers_parameters) tell_tracker([&] { parameters_gathered(function); });
  tell_tracker([&] { tracker_.operator_started(function); });
}

/// What was tried before it does not count if the program takes steps now.
void ProgramRecorder::went_on_after_failure() {
  const Boundary here = boundary();
  const std::lock_guard lock(mutex_);
  if (memory_.count_failures() == seen_failures_) return;
  seen_failures_ = memory_.count_failures();
  if (!peak_at_failure_) peak_at_failure_ = current_peak();
  phases_.went_on(here);
  phases_until_failure_ = phases_.completed().size();
  tracker_.restart_peak();
  if (recording_) forget_recorded();
  phase_changed();
}

void ProgramRecorder::operator_finished(const at::RecordFunction& function) {
  if (!running_operators.empty()) running_operators.pop_back();
  counts_are_read = false;
  memory_.settle();
  tell_tracker([&] { trace_.operator_finished(function); });
  tell_tracker([&] { tracker_.operator_finished(function); });
}

/// fully_shard's units lie whole in memory while their modules run.
void ProgramRecorder::parameters_gathered(const at::RecordFunction& copy_out) {
  const estimator::LastingMemory gathered = {
      .category = estimator::MemoryCategory::kParameter, .owner = "fsdp", .name = ""};
  for (const c10::IValue& input : copy_out.inputs()) {
    if (!input.isTensorList()) continue;
    for (const at::Tensor& tensor : input.toTensorVector()) tracker_.memory_lasts(tensor, gathered);
  }
}

void ProgramRecorder::node_started(const at::RecordFunction& node) {
  tracker_.node_started(node);
  trace_.node_started();
  memory_.node_started();
  if (at::GradMode::is_enabled()) trace_.backward_is_differentiated();
  backward_runs();
}

void ProgramRecorder::backward_runs() {
  {
    const std::lock_guard lock(mutex_);
    const bool is_first = !phases_.has_backward_since_step();
    phases_.backward_ran();
    if (!is_first || stopped_ || !took_last_step()) return;
    stopped_ = true;
  }
  finish();
  end_program();
}

void ProgramRecorder::node_finished() {
  memory_.node_finished();
  tracker_.node_finished();
}

void ProgramRecorder::optimizer_made() {
  const Boundary here = boundary();
  const std::lock_guard lock(mutex_);
  phases_.optimizer_made(here);
  phase_changed();
}

void ProgramRecorder::forward_started() {
  const Boundary here = boundary();
  const std::lock_guard lock(mutex_);
  phases_.forward_started(here);
  phase_changed();
}

/// An optimizer may step others: the outermost counts, and takes the peaks of those inside. A step
/// that a CUDA graph captures is taken at each launch of the graph.
void ProgramRecorder::step_started() {
  {
    const std::lock_guard lock(mutex_);
    if (step_depth_++ > 0) return;
    step_is_captured_ = capture_ != 0;
    if (step_is_captured_) return;
  }
  const Boundary here = boundary();
  const std::lock_guard lock(mutex_);
  failures_before_step_ = memory_.count_failures();
  phases_.step_started(here);
  phase_changed();
}

void ProgramRecorder::optimizer_told(uint64_t key) {
  const std::lock_guard lock(mutex_);
  if (is_captured_step()) stepping_graphs_.try_emplace(capture_, key);
  if (!is_of_step()) return;
  const int64_t before = phases_.iteration();
  phases_.optimizer_told(key);
  const int64_t now = phases_.iteration();
  if (now == before) return;
  if (now < before && before == choice_.chosen()) forget_recorded();
  if (now > before) {
    choice_.had_other_steps(before);
    choose_iteration(now + 1);  // what this one began with was not recorded
  }
  phase_changed();
}

void ProgramRecorder::code_compiled() {
  const std::lock_guard lock(mutex_);
  choice_.compiled(phases_.iteration());
}

/// Of an optimizer inside another, its closure is the outer one's business.
void ProgramRecorder::closure_started() {
  const Boundary here = boundary();
  const std::lock_guard lock(mutex_);
  if (!is_of_step()) return;
  phases_.closure_started(here);
  phase_changed();
}

void ProgramRecorder::closure_finished() {
  const Boundary here = boundary();
  const std::lock_guard lock(mutex_);
  if (!is_of_step()) return;
  phases_.closure_finished(here);
  phase_changed();
}

void ProgramRecorder::step_finished() {
  {
    const std::lock_guard lock(mutex_);
    if (--step_depth_ > 0 || std::exchange(step_is_captured_, false)) return;
  }
  const Boundary here = boundary();
  const std::lock_guard lock(mutex_);
  if (memory_.count_failures() > failures_before_step_) {
    phases_.step_failed(here);
    return phase_changed();
  }
  phases_.step_finished(here);
  if (seen_failures_ > caught_failures_) memory_.forget_failure();
  caught_failures_ = seen_failures_;
  choose_iteration(phases_.iteration());
  phase_changed();
  estimator::write_file_whole((folder_ / kStepsTaken).string(),
                              std::to_string(phases_.iteration()));
  // What follows the last step is begun and not ended: it is no part of the peak.
  if (took_last_step()) peak_at_last_step_ = current_peak();
}

void ProgramRecorder::module_entered(const char* path) {
  if (is_building_) forward_started();
  tell_tracker([&] { tracker_.enter_path(path); });
}

bool ProgramRecorder::took_last_step() const {
  return settings_.steps > 0 && phases_.iteration() >= settings_.steps;
}

bool ProgramRecorder::has_ended_program() {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

void ProgramRecorder::module_left() {
  tell_tracker([&] { tracker_.leave(); });
}

void ProgramRecorder::memory_lasts(uint64_t address, const char* category, const char* name) {
  tell_tracker([&] { tracker_.memory_lasts(address, lasting_memory(category, name)); });
}

void ProgramRecorder::tensor_lies(uint64_t address, int64_t bytes) {
  memory_.settle();
  tell_tracker([&] { trace_.tensor_lies(address, bytes); });
}

void ProgramRecorder::kernel_updates(const char* name,
                                     std::span<const uint64_t> addresses,
                                     int64_t updated) {
  trace_.kernel_updates(name, addresses, updated);
}

void ProgramRecorder::model_reads(uint64_t model, int64_t integers) {
  trace_.model_reads(model, integers);
}

void ProgramRecorder::host_updated(int64_t bytes, bool is_fused) {
  tell_tracker([&] { trace_.host_updated(bytes, is_fused); });
}

void ProgramRecorder::rank_told(int64_t rank, int64_t world_size) {
  const std::lock_guard lock(mutex_);
  rank_ = {.rank = rank, .world_size = world_size};
  joins_world_ = true;
}

void ProgramRecorder::parameters_told(const char* json) {
  tell_tracker([&] {
    std::vector<estimator::ParameterRecord> parameters;
    estimator::FieldReader reader("the observer");
    reader.read(estimator::parse_json(json, "the observer"), parameters, "");
    reader.throw_if_any();
    const std::lock_guard lock(mutex_);
    parameters_ = std::move(parameters);
  });
}

void ProgramRecorder::find_device() {
  if (device_.total_bytes == 0) device_ = program_device(device_);
}

/// Where another iteration is chosen, what was recorded is kept until that one has ended.
void ProgramRecorder::choose_iteration(int64_t next) {
  choice_.compare_calls(next);
  const int64_t chosen = choice_.chosen();
  const IterationFacts facts = choice_.facts();
  if (!choice_.iteration_began(next)) return;
  trace_.stop();
  tracker_.set_recording(false);
  last_recorded_ = recorded_as(chosen, facts);
  forget_recorded();
}

void ProgramRecorder::forget_recorded() {
  if (recording_) trace_.stop();
  recording_ = false;
  tracker_.set_recording(false);
  tracker_.forget_operators();
  trace_.forget();
  collectives_.forget_iteration();
}

ProgramRecorder::Recorded ProgramRecorder::recorded() const {
  const bool has_ended = phases_.iteration() > choice_.chosen();
  if (!has_ended && last_recorded_) return *last_recorded_;
  return recorded_as(choice_.chosen(), choice_.facts());
}

ProgramRecorder::Recorded ProgramRecorder::recorded_as(int64_t iteration,
                                                       const IterationFacts& facts) const {
  const std::vector<std::string> phases = phase_names(phases_.finished({}));
  return {.iteration = iteration,
          .facts = facts,
          .trace = trace_.trace(),
          .operators = tracker_.locked(
              [&](const TrackedRun& run) { return counted_operators(run, phases); }),
          .communicators = collectives_.records()};
}

std::vector<std::string> ProgramRecorder::recorded_with(const IterationFacts& facts) const {
  std::vector<std::string> found;
  if (facts.compiles) found.emplace_back(estimator::kWithCompilation);
  if (facts.captures_graph) found.emplace_back(estimator::kWithGraphCapture);
  if (facts.has_other_steps) found.emplace_back(estimator::kWithOtherSteps);
  if (facts.has_other_calls) found.emplace_back(estimator::kWithOtherCalls);
  if (has_graphs_ && !facts.launches_graph) found.emplace_back(estimator::kWithoutGraph);
  return found;
}

/// Operators are recorded in one iteration, whose first-time costs are behind it.
void ProgramRecorder::phase_changed() {
  const bool record = phases_.iteration() == choice_.chosen() && is_of_iteration(phases_.running());
  if (record != recording_) {
    tracker_.set_recording(record);
    record ? trace_.start(choice_.chosen()) : trace_.stop();
  }
  recording_ = record;
  find_device();
  is_building_ = phases_.is_building();
  tracker_.end_phase();
  tracker_.begin_phase(static_cast<int32_t>(phases_.completed().size()),
                       direction_of(phases_.running()));
}

Boundary ProgramRecorder::boundary() {
  return {.now = memory_.current(),
          .peak = memory_.take_peak(),
          .time = std::chrono::steady_clock::now()};
}

/// What was in memory that is given out, or back, is not its new owner's.
void ProgramRecorder::memory_changes(const AllocatorFollower::Entry& entry) {
  if (!gpu_ || entry.action_ != AllocatorFollower::Entry::ALLOC) return;
  const auto* const address = reinterpret_cast<const void*>(entry.addr_);
  gpu_.forget(address, entry.size_, UINT64_MAX);
  messages_.written(address, entry.size_);
}

void ProgramRecorder::collective_called(const onerank_nccl_call& call) {
  const bool reduces = is_reduction(call.kind);
  const bool gathers = std::string_view(call.kind) == "all_gather";
  for (int i = 0; i < call.buffer_count; ++i) {
    const auto address = reinterpret_cast<uint64_t>(call.buffers[i]);
    tracker_.memory_communicated(address);
    if (reduces) tracker_.memory_reduced(address);
    if (gathers) tracker_.memory_gathered(address);
  }
  collectives_.add(call, recording_);
  note_call(call);
  tell_tracker([&] { pass_if_barrier(call); });
  if (messages_.reads_awaited(call)) settle_messages();
  if (gpu_ && settings_.record) tell_tracker([&] { messages_.called(call, gpu_); });
  if (gpu_) tell_tracker([&] { trace_.nccl_called(call, gpu_.stream_number(call.stream)); });
}

void ProgramRecorder::note_call(const onerank_nccl_call& call) {
  const std::lock_guard lock(mutex_);
  if (!is_of_iteration(phases_.running())) return;
  choice_.called(phases_.iteration(),
                 {.communicator = call.communicator,
                  .kind = call.kind,
                  .bytes = static_cast<int64_t>(call.bytes)});
}

void ProgramRecorder::device_event(const onerank_virtual_gpu_event& event) {
  switch (event.kind) {
    case ONERANK_VIRTUAL_GPU_KERNEL:
      kernel_launched(event.addresses, event.address_count);
      break;
    case ONERANK_VIRTUAL_GPU_CAPTURE:
      graph_captured(event.graph);
      break;
    case ONERANK_VIRTUAL_GPU_CAPTURED:
      graph_captured(0);
      break;
    case ONERANK_VIRTUAL_GPU_GRAPH_LAUNCH:
      graph_launched();
      break;
    case ONERANK_VIRTUAL_GPU_GRAPH_LAUNCHED:
      graph_has_run(event.graph);
      break;
    case ONERANK_VIRTUAL_GPU_MODULE_LOAD:
      code_compiled();
      break;
    default:
      break;
  }
  tell_tracker([&] { trace_.device_event(event); });
}

/// 0: it has ended.
void ProgramRecorder::graph_captured(uint64_t graph) {
  const std::lock_guard lock(mutex_);
  capture_ = graph;
  has_graphs_ = true;
  if (graph != 0) choice_.graph_captured(phases_.iteration());
}

/// A graph may hold a whole iteration, whose backward autograd then does not run.
void ProgramRecorder::graph_launched() {
  backward_runs();
  const std::lock_guard lock(mutex_);
  choice_.graph_launched(phases_.iteration());
}

void ProgramRecorder::graph_has_run(uint64_t graph) {
  std::optional<uint64_t> optimizer;
  {
    const std::lock_guard lock(mutex_);
    const auto found = stepping_graphs_.find(graph);
    if (found != stepping_graphs_.end()) optimizer = found->second;
  }
  if (!optimizer) return;
  step_started();
  optimizer_told(*optimizer);
  step_finished();
}

/// A kernel that no operator of PyTorch's stands for (of Triton, of an extension) may have written
/// anywhere into a block that it was given. Where nobody knows what it was given, or that is no
/// block of PyTorch's, nothing that was computed is known any more.
void ProgramRecorder::kernel_launched(const uint64_t* addresses, int64_t count) {
  if (count < 0) {
    if (!runs_own_kernels()) gpu_.forget_computed();
    return;
  }
  memory_.settle();
  for (int64_t i = 0; i < count; ++i) {
    const auto block = tracker_.block_around(addresses[i]);
    if (!block) return gpu_.forget_computed();
    const auto* const address = reinterpret_cast<const void*>(block->address);
    gpu_.forget(address, block->bytes, UINT64_MAX);
    messages_.written(address, static_cast<uint64_t>(block->bytes));
  }
}

void ProgramRecorder::settle_messages() {
  tell_tracker(
      [&] { messages_.settle(gpu_, [this](const std::string& what) { refuse("a " + what); }); });
}

void ProgramRecorder::value_invented(const void* address, int64_t bytes) {
  const std::string reader = running_operators.empty() ? "" : running_operators.front().name;
  const std::string missing = messages_.missing_at(address, static_cast<uint64_t>(bytes));
  if (!missing.empty()) return refuse("a " + missing);
  const bool is_count = counts_are_read || sizes_by_values();
  if (is_count && !settings_.accept_invented_counts) refuse_count(reader);
  const std::lock_guard lock(mutex_);
  ++invented_reads_[{reader, phases_.running(), bytes}];
}

void ProgramRecorder::refuse_count(const std::string& reader) {
  const PythonLine line = python_line();
  if (line.is_printing) return;  // sizes nothing that lasts
  std::string phase;
  {
    const std::lock_guard lock(mutex_);
    phase = phases_.running();
  }
  refuse(fmt::format(
      "counts that only kernels would know ({} of {}{}{}, {}; such as the tokens of each expert)",
      reader,
      counted_tensor,
      line.text.empty() ? "" : ", ",
      line.text,
      phase));
}

/// What follows would not be what the program does: it ends here. After its last step nothing that
/// it does counts, such as an evaluation that asks for what cannot be known.
void ProgramRecorder::refuse(const std::string& what) {
  bool counts = true;
  {
    const std::lock_guard lock(mutex_);
    if (!unanswered_.empty() || stopped_) return;
    counts = !took_last_step();
    stopped_ = !counts;
  }
  if (counts) not_answered(what);
  finish();
  end_program();
}

void ProgramRecorder::not_answered(const std::string& what) {
  const std::lock_guard lock(mutex_);
  const bool is_new = std::find(unanswered_.begin(), unanswered_.end(), what) == unanswered_.end();
  if (is_new) unanswered_.push_back(what);
}

void ProgramRecorder::leave_out() {
  const std::lock_guard lock(mutex_);
  if (getpid() != process_ || finished_) return;
  finished_ = true;
  std::error_code ignored;  // it is a folder of temporary files
  std::filesystem::remove_all(folder_, ignored);
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
    write_memory_files(result);
    estimator::write_file_whole((folder_ / kProcessProfile).string(),
                                estimator::document_text(result));
  } catch (const std::exception& error) {
    std::ofstream(folder_ / kInternalError) << error.what();
  }
}

void ProgramRecorder::write_memory_files(const RankProfile& profile) {
  const std::lock_guard lock(mutex_);
  const std::vector<std::string> phases = phase_names(phases_.finished({}));
  const Peak most = peak();
  tracker_.locked([&](const TrackedRun& run) {
    sim::write_memory_files(settings_, folder_, profile, run, phases, most.allocations);
  });
}

/// Of the phases that the profile has.
ProgramRecorder::Peak ProgramRecorder::peak() const {
  Peak last = stopped_ && peak_at_last_step_ ? *peak_at_last_step_ : current_peak();
  const bool is_caught = !memory_.first_failure();
  if (is_caught || !peak_at_failure_) return last;
  return bytes_of(peak_at_failure_->allocations) > bytes_of(last.allocations) ? *peak_at_failure_
                                                                              : last;
}

estimator::PeakRecord ProgramRecorder::largest_judged_peak(
    const std::vector<PhaseRecord>& phases) const {
  const bool is_caught = caught_failures_ > 0 && !memory_.first_failure();
  const size_t first = is_caught ? std::min(phases_until_failure_, phases.size()) : 0;
  return largest_peak({phases.begin() + static_cast<std::ptrdiff_t>(first), phases.end()});
}

ProgramRecorder::Peak ProgramRecorder::current_peak() const {
  Peak peak;
  const std::vector<std::string> phases = phase_names(phases_.finished({}));
  const estimator::ParametersRecord parameters = this->parameters();
  tracker_.locked([&](const TrackedRun& run) {
    peak.allocations = peak_allocations(run, phases);
    peak.modules = module_records(run, parameters);
  });
  if (gpu_) peak.used_bytes = static_cast<int64_t>(gpu_.most_used_bytes(device_index(memory_)));
  return peak;
}

/// What was held beside PyTorch's allocator, and beside what was there from the start, when most
/// was in use.
int64_t ProgramRecorder::other_libraries_bytes(const Peak& peak,
                                               const estimator::PeakRecord& of_torch) const {
  if (!gpu_) return 0;
  const auto at_start = static_cast<int64_t>(gpu_.outside_bytes());
  return std::max<int64_t>(0, peak.used_bytes - at_start - of_torch.reserved_bytes);
}

estimator::ParametersRecord ProgramRecorder::parameters() const {
  estimator::ParametersRecord record{.tensors = parameters_};
  for (const estimator::ParameterRecord& parameter : parameters_) {
    record.count += std::accumulate(
        parameter.shape.begin(), parameter.shape.end(), int64_t{1}, std::multiplies<int64_t>());
    record.bytes += parameter.bytes;
  }
  return record;
}

std::optional<estimator::OutOfMemoryRecord> ProgramRecorder::out_of_memory() const {
  const auto failure = memory_.first_failure();
  if (!failure) return std::nullopt;
  const OutOfMemoryPlace& place = failure->place;
  estimator::OutOfMemoryRecord record{
      .phase = phase_name(phase_names(phases_.finished({})), place.phase),
      .module = module_path(tracker_, place.module),
      .operator_name = place.op == nullptr ? "" : place.op->name,
      .requested_bytes = failure->requested_bytes,
      .free_bytes = failure->free_bytes,
      .message = fmt::format("{} were asked for, {} were free",
                             estimator::format_gib(failure->requested_bytes),
                             estimator::format_gib(failure->free_bytes))};
  if (estimator::reached_own_limit(record)) {
    record.message += fmt::format(
        "; {} were reserved (torch.cuda.set_per_process_memory_fraction sets how much may be)",
        estimator::format_gib(place.reserved_bytes));
  }
  return record;
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
  const Recorded recorded = this->recorded();
  profile.program = program_record(recorded);
  const Rank rank = rank_in(profile.program->communicators);
  profile.rank = rank.rank;
  profile.world_size = rank.world_size;
  find_device();
  profile.device = device_;
  profile.limit_lifted = settings_.limit_lifted;
  profile.micro_batches = {.total = 1, .executed = 1};
  profile.parameters = parameters();
  profile.allocator = memory_.allocator_record();
  profile.phases = stopped_ ? phases_.completed() : phases_.finished(here);
  profile.peak = largest_judged_peak(profile.phases);
  Peak most = peak();
  describe_peak(most.allocations, profile.peak);
  check_attribution(profile.peak);
  profile.modules = std::move(most.modules);
  profile.program->other_libraries_bytes =
      other_libraries_bytes(most, largest_peak(profile.phases));
  profile.out_of_memory = out_of_memory();
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
    if (std::find(names.begin(), names.end(), op.name) == names.end()) names.push_back(op.name);
  }
  return profile;
}

ProgramRecord ProgramRecorder::program_record(const Recorded& recorded) const {
  ProgramRecord record;
  record.command = settings_.command;
  record.recorded = settings_.record;
  record.device_index = device_index(memory_);
  record.other_devices = memory_.other_devices();
  record.backward_devices = memory_.backward_devices();
  record.product_devices = trace_.product_devices();
  if (gpu_) record.outside_bytes = static_cast<int64_t>(gpu_.outside_bytes());
  record.gpus_per_node = settings_.gpus_per_node;
  record.optimizer_steps = phases_.iteration();
  record.caught_failures = caught_failures_;
  record.recorded_iteration = recorded.iteration;
  record.recorded_with = recorded_with(recorded.facts);
  record.stopped_by_steps = stopped_;
  record.events = settings_.events;
  record.communicators = collectives_.records();
  record.joins_world = joins_world_ || !record.communicators.empty();
  if (gpu_) {
    record.kernels = kernel_records(gpu_);
    record.gemms = gemm_records(gpu_);
  }
  record.unanswered = unanswered_;
  record.assumed = assumptions_.records();
  record.absent_answers = absent_answers();
  for (const auto& [key, count] : invented_reads_) {
    const auto& [reader, phase, bytes] = key;
    record.invented_reads.push_back({reader, phase, bytes, count});
  }
  return record;
}

}  // namespace sim
