#include "sim/exec/trace_recorder.h"

#include <c10/cuda/CUDAFunctions.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "estimator/base/fields.h"
#include "sim/exec/traced_work.h"

namespace sim {
namespace {

using estimator::BytesSource;
using estimator::HostIssue;
using estimator::Trace;
using estimator::TraceEventKind;
using estimator::TraceWork;
using estimator::WorkKind;

/// A kernel that an operator launched, before it is known what the operator did.
struct TracedLaunch {
  std::size_t event = 0;
  int64_t forgotten = 0;  ///< how often the recorder had forgotten its events before this one
  uint64_t captured = 0;  ///< number of the work in a graph, which has no event yet; 0: none
  std::string name;
  uint64_t threads = 0;
};

struct TracedOperator {
  OperatorCall call;
  std::vector<TracedLaunch> launches;
  bool multiplied = false;  ///< by cuBLAS, which has its FLOPs
  bool has_mask = false;    ///< of attention
  bool has_dropout = false;
};

/// Of attention.
void read_extras(c10::ArrayRef<c10::IValue> inputs, TracedOperator& running) {
  const OperatorTraits& op = *running.call.op;
  const auto given = [&](int argument) { return argument >= 0 && !inputs[argument].isNone(); };
  running.has_mask = given(op.mask_argument) && inputs[op.mask_argument].isTensor() &&
                     inputs[op.mask_argument].toTensor().defined();
  running.has_dropout = given(op.dropout_argument) && inputs[op.dropout_argument].isDouble() &&
                        inputs[op.dropout_argument].toDouble() > 0;
}

/// On this thread, outermost first.
thread_local std::vector<TracedOperator> traced_operators;
/// Operators and nodes that this thread began since its last event, in iterations that are
/// recorded.
thread_local int64_t begun_operators = 0;
/// This thread launches a CUDA graph, whose works the host asks for at once.
thread_local bool is_launching_graph = false;
/// ... and has asked for the first of them.
thread_local bool has_launched_graph = false;
/// Where the program was when it captured the work that this thread launches; null: nowhere.
thread_local const Place* captured_here = nullptr;
/// What this thread's kernels are, if Python has told it.
thread_local std::optional<TraceWork> told_attention;
/// The lengths of its loops, if Python has told them.
thread_local std::vector<int64_t> told_loops;
/// This thread does the recorder's own work.
thread_local bool works_for_itself = false;
/// This thread is inside the stub of NCCL.
thread_local bool is_answering = false;

/// Kernels of attention and of products that are not cuBLAS's. Those beside them only prepare.
bool multiplies(std::string_view name) {
  const std::string_view kernel = name.substr(0, name.find('<'));
  constexpr std::string_view kParts[] = {
      "flash_fwd", "flash_bwd_dq", "fmha", "attention_kernel", "gemm", "cutlass"};
  return std::any_of(std::begin(kParts), std::end(kParts), [&](std::string_view part) {
    return kernel.find(part) != kernel.npos;
  });
}

std::vector<const TracedLaunch*> multiplying(const std::vector<TracedLaunch>& launches) {
  std::vector<const TracedLaunch*> found;
  for (const TracedLaunch& launch : launches) {
    if (multiplies(launch.name)) found.push_back(&launch);
  }
  if (found.empty()) {
    found.push_back(&*std::max_element(
        launches.begin(), launches.end(), [](const TracedLaunch& a, const TracedLaunch& b) {
          return a.threads < b.threads;
        }));
  }
  return found;
}

/// The works of an operator's kernels, in the order of its launches.
std::vector<TraceWork> works_of(const TracedOperator& running) {
  const OperatorCall& call = running.call;
  double threads = 0;
  for (const TracedLaunch& launch : running.launches)
    threads += static_cast<double>(launch.threads);
  const bool is_product = call.op->flops != FlopRule::kOutputElements && !running.multiplied;
  const auto main = is_product ? multiplying(running.launches) : std::vector<const TracedLaunch*>();
  std::vector<TraceWork> works;
  for (const TracedLaunch& launch : running.launches) {
    const double share = threads == 0 ? 0 : static_cast<double>(launch.threads) / threads;
    const bool is_main = std::find(main.begin(), main.end(), &launch) != main.end();
    works.push_back({.kind = WorkKind::kKernel,
                     .name = launch.name,
                     .operator_name = call.op->name,
                     .dtype = c10::toString(call.dtype),
                     .other_dtype = other_dtype_name(call),
                     .is_strided = call.is_strided,
                     .shapes = shapes_of(call),
                     .flops = is_main ? call.flops / static_cast<double>(main.size()) : 0,
                     .has_unknown_lengths = is_main && call.has_unknown_lengths,
                     .bytes = static_cast<int64_t>(share * static_cast<double>(call.bytes)),
                     .threads = static_cast<int64_t>(launch.threads),
                     .bytes_source = BytesSource::kOperator,
                     .is_misaligned = call.is_misaligned,
                     .has_mask = running.has_mask,
                     .has_dropout = running.has_dropout});
  }
  return works;
}

/// The numbers that a kernel was given, as far as they are sizes: not those with which it had more
/// elements than the largest block has bytes. They are something else, such as the bits of a float.
std::vector<int64_t> sizes_told(const onerank_virtual_gpu_event& event, int64_t largest) {
  if (!told_loops.empty()) return told_loops;
  std::vector<int64_t> sizes;
  int64_t elements = 1;
  for (int64_t i = 0; i < event.number_count; ++i) {
    const int64_t number = event.numbers[i];
    if (number <= 1 || number > largest / elements) continue;
    elements *= number;
    sizes.push_back(number);
  }
  return sizes;
}

bool names_record(TraceEventKind kind) {
  return kind == TraceEventKind::kRecord || kind == TraceEventKind::kStreamWait ||
         kind == TraceEventKind::kHostWaitRecord;
}

}  // namespace

void own_work_starts() { works_for_itself = true; }

void own_work_ends() { works_for_itself = false; }

bool is_own_work() { return works_for_itself; }

void TraceRecorder::start(int64_t iteration) {
  const std::lock_guard lock(mutex_);
  iteration_ = iteration;
  begun_operators = 0;
  if (events_.empty()) first_record_ = last_record_ + 1;
  recording_ = true;
}

void TraceRecorder::stop() {
  const std::lock_guard lock(mutex_);
  is_complete_ = is_complete_ || recording_;
  if (recording_) end_record_ = last_record_ + 1;
  recording_ = false;
}

void TraceRecorder::forget() {
  const std::lock_guard lock(mutex_);
  ++forgotten_;
  is_complete_ = false;
  differentiates_backward_ = false;
  events_.clear();
  ranges_.clear();
  works_.clear();
  numbers_.clear();
  groups_.clear();
  models_.clear();
  inputs_.clear();
}

void TraceRecorder::operator_started(const at::RecordFunction& function, const OperatorTraits& op) {
  if (recording_) ++begun_operators;
  traced_operators.push_back({.call = {.op = &op}});
  if (describes_operators() && !op.moves_no_data) {
    measure_inputs(function.inputs(), traced_operators.back().call, tracker_.read_integers());
    read_extras(function.inputs(), traced_operators.back());
  }
}

void TraceRecorder::range_started(std::string_view name) {
  constexpr std::string_view kFullyShard = "FSDP::";
  if (!recording_ || !name.starts_with(kFullyShard)) return;
  const std::lock_guard lock(mutex_);
  // Behind the name stands that of the module.
  const auto event = static_cast<int64_t>(events_.size());
  ranges_.push_back({.event = event, .name = std::string(name.substr(0, name.find(' ')))});
}

void TraceRecorder::node_started() {
  if (recording_) ++begun_operators;
}

void TraceRecorder::operator_finished(const at::RecordFunction& function) {
  if (traced_operators.empty()) return;
  TracedOperator running = std::move(traced_operators.back());
  traced_operators.pop_back();
  if (!describes_operators() || running.launches.empty()) return;
  measure_outputs(function.outputs(), running.call);
  const std::vector<TraceWork> works = works_of(running);
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < works.size(); ++i) {
    const TracedLaunch& launch = running.launches[i];
    if (launch.captured != 0) {
      captured_[launch.captured].work = works[i];
    } else if (launch.forgotten == forgotten_)
      events_[launch.event].item = number_of(works[i]);
  }
}

/// `is_issued`: the host had to do something for it.
TraceRecorder::Event& TraceRecorder::add(TraceEventKind kind, int stream, bool is_issued) {
  Event event{.kind = kind,
              .stream = stream,
              .place = tracker_.place_here(),
              .operators = std::exchange(begun_operators, 0)};
  const bool is_asked =
      is_issued && !(is_launching_graph && std::exchange(has_launched_graph, true));
  if (is_asked) event.issue = HostIssue::kCall;
  if (captured_here != nullptr) event.place = *captured_here;
  return events_.emplace_back(event);
}

void TraceRecorder::add_work(const TraceWork& work, int stream) {
  add(TraceEventKind::kLaunch, stream, true).item = number_of(work);
}

int64_t TraceRecorder::number_of(const TraceWork& work) {
  const auto [place, is_new] =
      numbers_.try_emplace(estimator::to_json(work).dump(), static_cast<int64_t>(works_.size()));
  if (is_new) works_.push_back(work);
  return place->second;
}

const std::string& TraceRecorder::kernel_name(const char* mangled) {
  const auto [place, is_new] = kernel_names_.try_emplace(mangled);
  if (is_new) place->second = readable_name(mangled);
  return place->second;
}

void TraceRecorder::tensor_lies(uint64_t address, int64_t bytes) {
  const auto block = tracker_.block_around(address);
  const std::lock_guard lock(mutex_);
  if (block) tensors_[address] = {.bytes = bytes, .block = *block};
}

void TraceRecorder::kernel_updates(const char* name,
                                   std::span<const uint64_t> addresses,
                                   int64_t updated) {
  const std::lock_guard lock(mutex_);
  std::set<uint64_t>& known = updated_[name];
  const auto split = addresses.begin() + updated;
  std::for_each(split, addresses.end(), [&](uint64_t address) { known.erase(address); });
  known.insert(addresses.begin(), split);
}

void TraceRecorder::model_reads(uint64_t model, int64_t integers) {
  if (!recording_ || integers == 0) return;
  const std::lock_guard lock(mutex_);
  const auto number =
      models_.try_emplace(model, static_cast<int64_t>(models_.size())).first->second;
  ++inputs_[{number, integers}];
}

void TraceRecorder::backward_is_differentiated() {
  if (!recording_) return;
  const std::lock_guard lock(mutex_);
  differentiates_backward_ = true;
}

void TraceRecorder::host_updated(int64_t bytes, bool is_fused) {
  if (!recording_) return;
  const std::lock_guard lock(mutex_);
  Event& event = add(TraceEventKind::kHostUpdates, -1, false);
  event.item = bytes;
  event.issue = is_fused ? HostIssue::kFusedUpdate : HostIssue::kUnfusedUpdate;
}

/// Of the tensor that lies there, or else from there to the end of the block; 0 outside blocks.
int64_t TraceRecorder::bytes_at(uint64_t address) const {
  const auto block = tracker_.block_around(address);
  if (!block) return 0;
  const auto tensor = tensors_.find(address);
  if (tensor != tensors_.end() && tensor->second.block == *block) return tensor->second.bytes;
  return static_cast<int64_t>(block->address + block->bytes - address);
}

/// What is behind the addresses, of a block each byte once.
TraceRecorder::GivenMemory TraceRecorder::memory_given_to(
    const onerank_virtual_gpu_event& event) const {
  GivenMemory given;
  for (int64_t i = 0; i < event.address_count; ++i) {
    given.bytes[event.addresses[i]] = bytes_at(event.addresses[i]);
    ++given.times[event.addresses[i]];
  }
  for (auto part = given.bytes.begin(), next = part; part != given.bytes.end(); part = next) {
    if (++next == given.bytes.end()) break;
    part->second = std::min(part->second, static_cast<int64_t>(next->first - part->first));
  }
  for (const auto& [address, bytes] : given.bytes) given.largest = std::max(given.largest, bytes);
  const auto updated = updated_.find(kernel_names_.at(event.name));
  if (updated == updated_.end()) return given;
  for (auto& [address, times] : given.times) {
    if (updated->second.contains(address)) times = std::max(times, int64_t{2});
  }
  return given;
}

/// A kernel that was told its number of elements moves no more of a block than eight bytes for
/// each: a part of a larger block counts as two bytes an element. If it has two threads and more
/// for each of these, they are the elements of one block, such as the logits of a token. What it
/// was given twice, or updates, is read and written.
int64_t TraceRecorder::bytes_moved(const onerank_virtual_gpu_event& event,
                                   const GivenMemory& given,
                                   const std::vector<int64_t>& sizes) {
  int64_t elements = 1;
  for (const int64_t size : sizes) elements *= size;
  if (event.threads / 2 >= static_cast<uint64_t>(elements)) {
    const auto blocks = static_cast<int64_t>(event.blocks);
    elements *= std::max(std::min(blocks, given.largest / elements), int64_t{1});
  }
  constexpr int64_t kLargestElement = 8, kUsualElement = 2;
  const bool is_told = !sizes.empty();
  int64_t sum = 0;
  for (const auto& [address, bytes] : given.bytes) {
    const bool is_part = is_told && bytes / elements > kLargestElement;
    sum += given.times.at(address) * (is_part ? elements * kUsualElement : bytes);
  }
  return sum;
}

void TraceRecorder::kernel_loops(std::span<const int64_t> lengths) {
  told_loops.assign(lengths.begin(), lengths.end());
}

void TraceRecorder::attention_starts(TraceWork work) { told_attention = std::move(work); }

void TraceRecorder::attention_ends() { told_attention.reset(); }

void TraceRecorder::add_kernel(const onerank_virtual_gpu_event& event) {
  if (!told_attention && !traced_operators.empty()) {
    const auto place = events_.size();
    add(TraceEventKind::kLaunch, event.stream, true).item = -1;
    traced_operators.back().launches.push_back(
        {place, forgotten_, 0, kernel_name(event.name), event.threads});
    return;
  }
  const auto captured = captured_.find(event.captured);
  const bool is_described = captured != captured_.end() && captured->second.work;
  add_work(is_described ? *captured->second.work : described(event), event.stream);
}

TraceWork TraceRecorder::described(const onerank_virtual_gpu_event& event) {
  TraceWork work = described_by_memory(event);
  if (!told_attention) return work;
  TraceWork told = *told_attention;
  told.name = std::move(work.name);
  told.bytes = work.bytes;
  told.threads = work.threads;
  return told;
}

/// A kernel that no operator launched.
TraceWork TraceRecorder::described_by_memory(const onerank_virtual_gpu_event& event) {
  TraceWork work{.kind = WorkKind::kKernel,
                 .name = kernel_name(event.name),
                 .bytes = static_cast<int64_t>(event.bytes),
                 .threads = static_cast<int64_t>(event.threads)};
  if (event.bytes == 0 && event.address_count >= 0) {
    const GivenMemory given = memory_given_to(event);
    const std::vector<int64_t> sizes = sizes_told(event, given.largest);
    work.bytes = bytes_moved(event, given, sizes);
    work.bytes_source = BytesSource::kParameters;
    if (!sizes.empty()) work.shapes = {sizes};
  } else if (event.bytes == 0) {
    work.bytes_source = BytesSource::kNothing;
  }
  return work;
}

/// It has no event before its graph is launched. The blocks that it was given may be free by then.
void TraceRecorder::add_captured(const onerank_virtual_gpu_event& event) {
  Captured& captured = captured_[event.captured];
  captured.place = tracker_.place_here();
  if (told_attention || traced_operators.empty()) {
    if (event.name != nullptr) captured.work = described(event);
    return;
  }
  TracedOperator& running = traced_operators.back();
  if (event.product != nullptr || event.attention != nullptr) running.multiplied = true;
  if (event.name == nullptr) return;
  running.launches.push_back(
      {0, forgotten_, event.captured, kernel_name(event.name), event.threads});
}

/// The host waits for a copy of more than 64 KiB out of its pageable memory (CUDA Programming
/// Guide, "Asynchronous Concurrent Execution"). The virtual GPU tells itself that it waits for one
/// into it.
void TraceRecorder::add_copy(const onerank_virtual_gpu_event& event) {
  constexpr uint64_t kLargestWithoutWait = 64 << 10;
  const TraceWork work = copy_work(event);
  add_work(work, event.stream);
  const bool waits = work.is_pageable && work.name == estimator::kHostToDevice &&
                     event.bytes > kLargestWithoutWait;
  if (waits) add(TraceEventKind::kHostWaitStream, event.stream, false);
}

void TraceRecorder::device_event(const onerank_virtual_gpu_event& event) {
  if (is_answering) return;
  const std::lock_guard lock(mutex_);
  captured_here = nullptr;
  if (event.kind == ONERANK_VIRTUAL_GPU_CAPTURE) capturing_ = true;
  if (event.kind == ONERANK_VIRTUAL_GPU_CAPTURED) capturing_ = false;
  if (event.kind == ONERANK_VIRTUAL_GPU_CAPTURED_WORK) return add_captured(event);
  const auto record = static_cast<int64_t>(event.record);
  if (event.kind == ONERANK_VIRTUAL_GPU_RECORD) last_record_ = record;
  if (event.kind == ONERANK_VIRTUAL_GPU_GRAPH_LAUNCHED) is_launching_graph = false;
  if (event.kind == ONERANK_VIRTUAL_GPU_GRAPH_LAUNCH) {
    is_launching_graph = true;
    has_launched_graph = false;
  }
  if (!recording_) return;
  const auto captured = captured_.find(event.captured);
  if (captured != captured_.end()) captured_here = &captured->second.place;
  switch (event.kind) {
    case ONERANK_VIRTUAL_GPU_KERNEL:
      return add_kernel(event);
    case ONERANK_VIRTUAL_GPU_PRODUCT: {
      product_devices_.insert(c10::cuda::current_device());
      TraceWork work = product_work(*event.product);
      if (!traced_operators.empty()) {
        traced_operators.back().multiplied = true;
        work.operator_name = traced_operators.back().call.op->name;
      }
      return add_work(work, event.stream);
    }
    case ONERANK_VIRTUAL_GPU_ATTENTION:
      product_devices_.insert(c10::cuda::current_device());
      if (!traced_operators.empty()) traced_operators.back().multiplied = true;
      return add_work(attention_work(event, *event.attention), event.stream);
    case ONERANK_VIRTUAL_GPU_COPY:
      return add_copy(event);
    case ONERANK_VIRTUAL_GPU_FILL:
      return add_work(
          {.kind = WorkKind::kFill, .name = "fill", .bytes = static_cast<int64_t>(event.bytes)},
          event.stream);
    case ONERANK_VIRTUAL_GPU_GRAPH_LAUNCH:
    case ONERANK_VIRTUAL_GPU_GRAPH_LAUNCHED:
    case ONERANK_VIRTUAL_GPU_CAPTURE:
    case ONERANK_VIRTUAL_GPU_CAPTURED:
    case ONERANK_VIRTUAL_GPU_CAPTURED_WORK:
    case ONERANK_VIRTUAL_GPU_MODULE_LOAD:
      return;
    case ONERANK_VIRTUAL_GPU_RECORD:
      add(TraceEventKind::kRecord, event.stream, false).item = record;
      return;
    case ONERANK_VIRTUAL_GPU_STREAM_WAIT:
      add(TraceEventKind::kStreamWait, event.stream, false).item = record;
      return;
    case ONERANK_VIRTUAL_GPU_HOST_WAIT:
      if (event.record != 0) {
        add(TraceEventKind::kHostWaitRecord, -1, false).item = record;
      } else {
        add(event.stream >= 0 ? TraceEventKind::kHostWaitStream : TraceEventKind::kHostWaitDevice,
            event.stream,
            false);
      }
      return;
  }
}

void TraceRecorder::nccl_called(const onerank_nccl_call& call, int stream) {
  is_answering = true;
  if (!recording_) return;
  const std::string_view kind = call.kind;
  const bool is_message = kind == "send" || kind == "recv";
  const std::lock_guard lock(mutex_);
  TraceWork work{.kind = is_message ? WorkKind::kMessages : WorkKind::kCollective,
                 .name = call.kind,
                 .dtype = call.dtype,
                 .bytes = static_cast<int64_t>(call.bytes),
                 .communicator = call.communicator};
  if (is_message) {
    work.name = "messages";
    work.messages = {{.is_send = kind == "send", .bytes = work.bytes, .peer = call.peer}};
  }
  if (call.group == 0) return add_work(work, stream);
  const auto [place, is_new] = groups_.try_emplace({call.group, call.communicator, work.name});
  Group& group = place->second;
  if (is_new) {
    group = {.event = events_.size(), .work = work, .ranks = call.size, .roots = {}};
    add(TraceEventKind::kLaunch, stream, true).item = -1;
  } else {
    group.work.bytes += work.bytes;
    const auto& added = work.messages;
    group.work.messages.insert(group.work.messages.end(), added.begin(), added.end());
  }
  group.roots.insert(call.peer);
}

TraceWork TraceRecorder::joined(const Group& group) {
  TraceWork work = group.work;
  const bool is_from_all =
      group.ranks > 1 && group.roots.size() == static_cast<size_t>(group.ranks);
  if (work.name == "broadcast" && is_from_all) work.name = "all_gather";
  return work;
}

void TraceRecorder::nccl_answered() { is_answering = false; }

/// By the virtual GPU's numbers: those of the trace from 0 on, and below 0 the same ones of the
/// iteration before, which are taken to have had the same order.
std::map<int64_t, int64_t> TraceRecorder::places_of_records() const {
  std::map<int64_t, int64_t> places;
  for (const Event& event : events_) {
    if (event.kind != TraceEventKind::kRecord) continue;
    places.try_emplace(event.item, static_cast<int64_t>(places.size()));
  }
  const auto own = static_cast<int64_t>(places.size());
  const int64_t of_iteration = end_record_ - first_record_;
  std::map<int64_t, int64_t> before;
  for (const auto& [number, place] : places) before[number - of_iteration] = place - own;
  places.merge(before);
  return places;
}

std::vector<int64_t> TraceRecorder::product_devices() const {
  const std::lock_guard lock(mutex_);
  return {product_devices_.begin(), product_devices_.end()};
}

std::optional<Trace> TraceRecorder::trace() const {
  const std::lock_guard lock(mutex_);
  if (!is_complete_) return std::nullopt;
  TraceRecorder whole(tracker_);  // of a copy, whose last works are numbered
  whole.works_ = works_;
  whole.numbers_ = numbers_;
  std::vector<int64_t> items;
  for (const Event& event : events_) items.push_back(event.item);
  for (const auto& [key, group] : groups_) items[group.event] = whole.number_of(joined(group));
  Trace trace{.iteration = iteration_, .differentiates_backward = differentiates_backward_};
  const std::map<int64_t, int64_t> records = places_of_records();
  std::map<ModuleId, int64_t> modules;
  auto range = ranges_.begin();
  for (std::size_t i = 0; i < events_.size(); ++i) {
    const Event& event = events_[i];
    for (; range != ranges_.end() && range->event == static_cast<int64_t>(i); ++range) {
      const auto place = static_cast<int64_t>(trace.events.kind.size());
      trace.ranges.push_back({.event = place, .name = range->name});
    }
    if (event.kind == TraceEventKind::kLaunch && items[i] < 0) {
      // The operator that launched it had not ended.
      items[i] = whole.number_of({.kind = WorkKind::kKernel,
                                  .name = "a kernel of an operator that did not end",
                                  .bytes_source = BytesSource::kNothing});
    }
    if (names_record(event.kind)) {
      const auto place = records.find(event.item);
      if (place == records.end()) continue;  // it is older, and over
      items[i] = place->second;
    }
    if (event.kind == TraceEventKind::kRecord) ++trace.records;
    const auto [module, is_new] =
        modules.try_emplace(event.place.module, static_cast<int64_t>(trace.modules.size()));
    if (is_new) trace.modules.push_back(module_path(tracker_, event.place.module));
    trace.events.kind.push_back(static_cast<int64_t>(event.kind));
    trace.events.stream.push_back(event.stream);
    trace.events.item.push_back(items[i]);
    trace.events.module.push_back(module->second);
    trace.events.direction.push_back(static_cast<int64_t>(event.place.direction));
    trace.events.issue.push_back(static_cast<int64_t>(event.issue));
    trace.events.operators.push_back(event.operators);
  }
  for (const auto& [input, calls] : inputs_) {
    trace.inputs.push_back({.model = input.first, .integers = input.second, .calls = calls});
  }
  trace.works = std::move(whole.works_);
  return trace;
}

}  // namespace sim
