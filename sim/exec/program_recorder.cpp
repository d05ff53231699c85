#include "sim/exec/program_recorder.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string_view>
#include <utility>

#include "estimator/base/contains.h"
#include "estimator/base/fields.h"
#include "sim/exec/memory_report.h"
#include "sim/exec/messages/barriers.h"
#include "sim/exec/program/program_device.h"
#include "sim/exec/program/python.h"
#include "sim/exec/program_callbacks.h"
#include "sim/exec/values/running_operators.h"
#include "sim/virtual_gpu/cupti/cupti_control.h"
#include "sim/virtual_gpu/find_control.h"

namespace sim {
namespace {

using estimator::Direction;

/// What the kernel that this thread launches only reads, if Python has told it.
thread_local std::vector<uint64_t> read_alone;

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
      trace_(tracker_,
             {.gpu = settings_.device.gpu,
              .world_size = launched_rank(settings_).world_size,
              .gpus_per_node = settings_.gpus_per_node,
              .communicator = [this](int number) { return collectives_.communicator(number); }}),
      assumptions_(settings_.assumed),
      phases_(std::chrono::steady_clock::now()),
      rank_(launched_rank(settings_)) {
  std::filesystem::create_directories(folder_);
  tracker_.begin_phase(0, phases_.direction());
}

/// Where the rank is behind the world, no launcher has told this process of its own: it is alone.
ProgramRecorder::Rank ProgramRecorder::launched_rank(const ExecSettings& settings) {
  const Rank told = {.rank = number_of("RANK", settings.rank),
                     .world_size = number_of("WORLD_SIZE", settings.world_size)};
  return told.rank < told.world_size ? told : Rank{};
}

void ProgramRecorder::start(const std::filesystem::path& library) {
  if (settings_.record) {
    install_program_callbacks(*this);
    run_script_soon((library.parent_path() / "observe.py").string(),
                    {{"recorder_path", library.string()}});
  }
  watch_nccl();
  if (gpu_ && settings_.record) watch_gpu();
}

void ProgramRecorder::watch_nccl() {
  using SetHost = decltype(&onerank_nccl_set_host);
  const auto set_host = reinterpret_cast<SetHost>(dlsym(RTLD_DEFAULT, "onerank_nccl_set_host"));
  if (set_host != nullptr) {
    set_host([](const onerank_nccl_call* call,
                void* self) { static_cast<ProgramRecorder*>(self)->collective_called(*call); },
             [](void* self) { static_cast<ProgramRecorder*>(self)->trace_.nccl_answered(); },
             [](void*) { return calling_group_size(); },
             this);
  }
  if (gpu_) return;
  using SetReal = decltype(&onerank_nccl_set_memory_is_real);
  const auto set_real =
      reinterpret_cast<SetReal>(dlsym(RTLD_DEFAULT, "onerank_nccl_set_memory_is_real"));
  if (set_real != nullptr) set_real(1);
}

void ProgramRecorder::watch_gpu() {
  gpu_.remember_values(std::max(kLargestControlBytes, gpu_.largest_bytes));
  gpu_.set_invention_sink(
      [](const void* address, uint64_t bytes, void* self) {
        static_cast<ProgramRecorder*>(self)->value_invented(address, static_cast<int64_t>(bytes));
      },
      this);
  gpu_.set_event_sink([](const onerank_virtual_gpu_event* event,
                         void* self) { static_cast<ProgramRecorder*>(self)->device_event(*event); },
                      this);
  gpu_.set_timer(
      [](uint64_t start, uint64_t end, void* self) {
        return static_cast<ProgramRecorder*>(self)
            ->trace_.seconds_between(start, end)
            .value_or(std::numeric_limits<double>::quiet_NaN());
      },
      this);
  const auto set_profiler = ONERANK_FIND_CONTROL(onerank_cupti_set_host);
  if (set_profiler != nullptr) {
    set_profiler([](void* self) { static_cast<ProgramRecorder*>(self)->trace_.start_clock(); },
                 this);
  }
  // What PyTorch's own kernels read and write is known from their operator.
  gpu_.ask_for_arguments([](void*) { return RunningOperators::own_kernels_run() ? 0 : 1; },
                         nullptr);
}

void ProgramRecorder::operator_started(const at::RecordFunction& function,
                                       const OperatorFacts& facts) {
  if (facts.may_read_messages) settle_messages();
  RunningOperators::began(function, facts);
  memory_.attach();
  memory_.settle();
  if (peaks_.has_new_failure()) went_on_after_failure();
  tell_tracker([&] { trace_.operator_started(function, *facts.traits); });
  if (facts.gathers_parameters) tell_tracker([&] { parameters_gathered(function); });
  tell_tracker([&] { tracker_.operator_started(function); });
}

void ProgramRecorder::operator_finished(const at::RecordFunction& function) {
  RunningOperators::ended();
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
  trace_.node_started(node.name());
  memory_.node_started();
  if (at::GradMode::is_enabled()) trace_.backward_is_differentiated();
  backward_runs();
}

void ProgramRecorder::node_finished() {
  memory_.node_finished();
  tracker_.node_finished();
}

void ProgramRecorder::module_entered(const char* path) {
  if (is_building_) forward_started();
  tell_tracker([&] { tracker_.enter_path(path); });
}

void ProgramRecorder::raised(const std::string& exception) const {
  std::ofstream(folder_.parent_path() / kExceptions, std::ios::app) << exception + "\n";
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

void ProgramRecorder::kernel_reads(std::span<const uint64_t> addresses) {
  read_alone.assign(addresses.begin(), addresses.end());
}

void ProgramRecorder::attention_started(const FlexAttention& attention, const std::string& dtype) {
  trace_.work_starts(flex_attention_work(attention, dtype));
}

void ProgramRecorder::product_started(const onerank_virtual_gpu_product& product) {
  trace_.work_starts(product_work(product));
}

void ProgramRecorder::work_finished() { trace_.work_ends(); }

void ProgramRecorder::tuned(const estimator::TunedRecord& tuned) {
  const std::lock_guard lock(mutex_);
  if (!estimator::contains(tuned_, tuned)) tuned_.push_back(tuned);
}

bool ProgramRecorder::read_known(uint64_t address, int64_t bytes, void* values) const {
  return gpu_ &&
         gpu_.peek(reinterpret_cast<const void*>(address), static_cast<uint64_t>(bytes), values) !=
             0;
}

void ProgramRecorder::tensor_holds(uint64_t address, int64_t bytes, const void* values) {
  if (gpu_) gpu_.send(reinterpret_cast<void*>(address), static_cast<uint64_t>(bytes), values);
}

void ProgramRecorder::experts_chosen(const Assumptions::Routes& routes) {
  tell_tracker([&] { assumptions_.experts_chosen(routes, gpu_); });
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
  const CollectiveLog::Key key = collectives_.told(call);
  if (const uint64_t mark = gpu_ ? gpu_.capture_mark(call.stream) : 0; mark != 0) {
    return capture_call(call, key, mark);
  }
  count_call(key);
  tell_tracker([&] { pass_if_barrier(call); });
  if (messages_.reads_awaited(call)) settle_messages();
  if (gpu_ && settings_.record) tell_tracker([&] { messages_.called(call, gpu_); });
  if (gpu_) tell_tracker([&] { trace_.nccl_called(call, gpu_.stream_number(call.stream), 0); });
}

void ProgramRecorder::count_call(const CollectiveLog::Key& call) {
  const std::lock_guard lock(mutex_);
  collectives_.add(call, recorded_.is_recording());
  if (!phases_.is_in_iteration()) return;
  recorded_.choice().called(
      phases_.iteration(),
      {.communicator = call.communicator, .kind = call.kind, .bytes = call.bytes});
}

void ProgramRecorder::note_product(const onerank_virtual_gpu_product* product) {
  const std::lock_guard lock(mutex_);
  if (phases_.direction() != Direction::kForward) return;
  const double multiply_adds =
      product == nullptr
          ? 0
          : static_cast<double>(product->m) * static_cast<double>(product->n) *
                static_cast<double>(product->k) * static_cast<double>(product->batch);
  recorded_.choice().multiplied(phases_.iteration(), multiply_adds);
}

void ProgramRecorder::device_event(const onerank_virtual_gpu_event& event) {
  // A program may take PyTorch's memory before it calls an operator (symmetric memory does).
  memory_.attach();
  switch (event.kind) {
    case ONERANK_VIRTUAL_GPU_KERNEL:
      kernel_launched(event.addresses, event.address_count);
      break;
    case ONERANK_VIRTUAL_GPU_PRODUCT:
    case ONERANK_VIRTUAL_GPU_ATTENTION:
      note_product(event.product);
      break;
    case ONERANK_VIRTUAL_GPU_CAPTURE:
      capture_began(event.graph);
      break;
    case ONERANK_VIRTUAL_GPU_CAPTURED:
      capture_ended();
      break;
    case ONERANK_VIRTUAL_GPU_GRAPH_LAUNCH:
      graph_launched();
      break;
    case ONERANK_VIRTUAL_GPU_GRAPH_LAUNCHED:
      graph_has_run(event.graph);
      break;
    case ONERANK_VIRTUAL_GPU_MARK:
      captured_call_runs(event.captured);
      break;
    case ONERANK_VIRTUAL_GPU_MODULE_LOAD:
      code_compiled();
      break;
    default:
      break;
  }
  tell_tracker([&] { trace_.device_event(event); });
}

/// A kernel that no operator of PyTorch's stands for (of Triton, of an extension) may have written
/// anywhere into a block that it was given, but for those of which it is known that it only reads
/// them. Where nobody knows what it was given, or that is no
/// block of PyTorch's, nothing that was computed is known any more.
void ProgramRecorder::kernel_launched(const uint64_t* addresses, int64_t count) {
  if (count < 0) {
    if (!RunningOperators::own_kernels_run()) gpu_.forget_computed();
    return;
  }
  memory_.settle();
  for (int64_t i = 0; i < count; ++i) {
    if (std::find(read_alone.begin(), read_alone.end(), addresses[i]) != read_alone.end()) continue;
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
  const std::string reader = RunningOperators::outermost();
  const std::string missing = messages_.missing_at(address, static_cast<uint64_t>(bytes));
  if (!missing.empty()) return refuse("a " + missing);
  if (RunningOperators::read_counts()) refuse_count(reader);
  const std::lock_guard lock(mutex_);
  ++invented_reads_[{reader, phases_.running(), bytes}];
}

void ProgramRecorder::refuse_count(const std::string& reader) {
  if (settings_.accept_invented_counts) return;
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
      RunningOperators::counted_tensor(),
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

}  // namespace sim
