#include "sim/exec/trace/trace_recorder.h"

#include <c10/cuda/CUDAFunctions.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "estimator/compute/gpu_rates.h"
#include "sim/exec/trace/operator_works.h"
#include "sim/exec/trace/peer_traffic.h"
#include "sim/exec/trace/traced_work.h"

namespace sim {
namespace {

using estimator::HostIssue;
using estimator::Trace;
using estimator::TraceEventKind;
using estimator::TraceWork;
using estimator::WorkKind;

/// On this thread, outermost first.
thread_local std::vector<TracedOperator> traced_operators;
/// Operators and nodes that this thread began since its last event, while events are followed.
thread_local int64_t begun_operators = 0;
/// This thread launches a CUDA graph, whose works the host asks for at once.
thread_local bool is_launching_graph = false;
/// ... and has asked for the first of them.
thread_local bool has_launched_graph = false;
/// Where the program was when it captured the work that this thread launches; null: nowhere.
thread_local const Place* captured_here = nullptr;
/// What this thread's kernels are, if Python has told it.
thread_local std::optional<TraceWork> told_work;
/// This thread is inside the stub of NCCL.
thread_local bool is_answering = false;

/// Whether the kernel with this name is one of those of which Python has told.
bool is_told(std::string_view name) {
  constexpr std::string_view kCompiled = "triton_";
  return told_work && name.starts_with(kCompiled);
}

}  // namespace

void TraceRecorder::start(int64_t iteration) {
  const std::lock_guard lock(mutex_);
  begun_operators = 0;
  traced_.start(iteration, last_record_);
  recording_ = true;
}

void TraceRecorder::stop() {
  const std::lock_guard lock(mutex_);
  traced_.stop(last_record_);
  recording_ = false;
}

void TraceRecorder::forget() {
  const std::lock_guard lock(mutex_);
  traced_.forget();
}

void TraceRecorder::operator_started(const at::RecordFunction& function, const OperatorTraits& op) {
  if (follows()) ++begun_operators;
  traced_operators.push_back({.call = {.op = &op}});
  if (describes_operators() && !op.moves_no_data) {
    measure_inputs(function.inputs(), traced_operators.back().call, tracker_.read_integers());
    read_extras(function.inputs(), traced_operators.back());
    traced_operators.back().peer_bytes = peer_bytes(function);
  }
}

void TraceRecorder::range_started(std::string_view name) {
  const std::string_view kind = name.substr(0, name.find(' '));  // behind it is the module's name
  if (!follows() || !estimator::is_host_range(kind)) return;
  const std::lock_guard lock(mutex_);
  if (recording_) traced_.range_started(kind);
  if (clock_) clock_->range_started(std::string(kind));
}

void TraceRecorder::node_started(std::string_view name) {
  if (follows()) ++begun_operators;
  range_started(name);
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
      continue;
    }
    if (clock_) clock_->runs(works[i], launch.stream, launch.call);
    if (launch.forgotten == traced_.forgotten()) traced_.is_work(launch.event, works[i]);
  }
}

TracedEvent TraceRecorder::event_here(TraceEventKind kind, int stream, int64_t item) const {
  TracedEvent event{.kind = kind,
                    .stream = stream,
                    .item = item,
                    .place = tracker_.place_here(),
                    .operators = std::exchange(begun_operators, 0)};
  if (captured_here != nullptr) event.place = *captured_here;
  return event;
}

void TraceRecorder::add(const TracedEvent& event) {
  if (clock_) clock_->issued(event, !traced_operators.empty());
  if (recording_) traced_.add(event);
}

TracedEvent TraceRecorder::launch_here(int stream, int64_t item) const {
  TracedEvent event = event_here(TraceEventKind::kLaunch, stream, item);
  const bool is_asked = !is_launching_graph || !std::exchange(has_launched_graph, true);
  if (is_asked) event.issue = HostIssue::kCall;
  return event;
}

void TraceRecorder::add_work(const TraceWork& work, int stream) {
  add(launch_here(stream, recording_ ? traced_.number_of(work) : -1));
  if (clock_) clock_->runs(work, stream, clock_->called(work.kind));
}

const std::string& TraceRecorder::kernel_name(const char* mangled) {
  const auto [place, is_new] = kernel_names_.try_emplace(mangled);
  if (is_new) place->second = readable_name(mangled);
  return place->second;
}

void TraceRecorder::tensor_lies(uint64_t address, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  arguments_.tensor_lies(address, bytes);
}

void TraceRecorder::kernel_updates(const char* name,
                                   std::span<const uint64_t> addresses,
                                   int64_t updated) {
  const std::lock_guard lock(mutex_);
  arguments_.kernel_updates(name, addresses, updated);
}

void TraceRecorder::model_reads(uint64_t model, int64_t integers) {
  if (!recording_ || integers == 0) return;
  const std::lock_guard lock(mutex_);
  traced_.model_reads(model, integers);
}

void TraceRecorder::evaluation_started() {
  if (!recording_) return;
  const std::lock_guard lock(mutex_);
  traced_.evaluation_started();
}

void TraceRecorder::evaluation_finished() {
  const std::lock_guard lock(mutex_);
  traced_.evaluation_finished();
}

void TraceRecorder::backward_is_differentiated() {
  if (!recording_) return;
  const std::lock_guard lock(mutex_);
  traced_.backward_is_differentiated();
}

void TraceRecorder::host_updated(int64_t bytes, bool is_fused) {
  if (!recording_) return;
  const std::lock_guard lock(mutex_);
  TracedEvent event = event_here(TraceEventKind::kHostUpdates, -1, bytes);
  event.issue = is_fused ? HostIssue::kFusedUpdate : HostIssue::kUnfusedUpdate;
  add(event);
}

void TraceRecorder::work_starts(TraceWork work) { told_work = std::move(work); }

void TraceRecorder::work_ends() { told_work.reset(); }

/// Whether what the kernel does follows from the operator that launched it.
bool TraceRecorder::is_of_operator(const onerank_virtual_gpu_event& event) {
  if (traced_operators.empty() || event.name == nullptr) return false;
  const std::string& name = kernel_name(event.name);
  return !is_told(name) && !is_signal(name) && !is_pause(name);
}

void TraceRecorder::add_kernel(const onerank_virtual_gpu_event& event) {
  if (is_of_operator(event)) {
    traced_operators.back().launches.push_back(
        {.event = traced_.size(),
         .stream = event.stream,
         .forgotten = recording_ ? traced_.forgotten() : -1,
         .call = clock_ ? clock_->called(WorkKind::kKernel) : 0,
         .name = kernel_name(event.name),
         .threads = event.threads});
    return add(launch_here(event.stream, -1));  // what it is comes later
  }
  const auto captured = captured_.find(event.captured);
  const bool is_described = captured != captured_.end() && captured->second.work;
  add_work(is_described ? *captured->second.work : described(event), event.stream);
}

TraceWork TraceRecorder::described(const onerank_virtual_gpu_event& event) {
  const std::string& name = kernel_name(event.name);
  const auto threads = static_cast<int64_t>(event.threads);
  if (is_signal(name)) return {.kind = WorkKind::kSignal, .name = name, .threads = threads};
  if (is_pause(name)) return {.kind = WorkKind::kKernel, .name = name, .threads = threads};
  TraceWork work = arguments_.work_of(event, name);
  if (!is_told(name)) return work;
  TraceWork told = *told_work;
  if (told.kind == WorkKind::kKernel) told.name = std::move(work.name);
  told.bytes = work.bytes;
  told.threads = work.threads;
  return told;
}

/// It has no event before its graph is launched. The blocks that it was given may be free by then.
void TraceRecorder::add_captured(const onerank_virtual_gpu_event& event) {
  Captured& captured = captured_[event.captured];
  captured.place = tracker_.place_here();
  const bool is_kernel = event.name != nullptr;
  if (is_kernel && !is_of_operator(event)) {
    captured.work = described(event);
    return;
  }
  if (traced_operators.empty()) return;
  TracedOperator& running = traced_operators.back();
  if (event.product != nullptr || event.attention != nullptr) running.multiplied = true;
  if (event.name == nullptr) return;
  running.launches.push_back({.stream = event.stream,
                              .captured = event.captured,
                              .name = kernel_name(event.name),
                              .threads = event.threads});
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
  if (waits) add(event_here(TraceEventKind::kHostWaitStream, event.stream, 0));
}

void TraceRecorder::add_product(const onerank_virtual_gpu_event& event) {
  product_devices_.insert(c10::cuda::current_device());
  if (!traced_operators.empty()) traced_operators.back().multiplied = true;
  if (event.attention != nullptr)
    return add_work(attention_work(event, *event.attention), event.stream);
  TraceWork work = product_work(*event.product);
  if (!traced_operators.empty()) work.operator_name = traced_operators.back().call.op->name;
  add_work(work, event.stream);
}

void TraceRecorder::add_host_wait(const onerank_virtual_gpu_event& event) {
  if (event.record != 0) {
    const auto record = static_cast<int64_t>(event.record);
    return add(event_here(TraceEventKind::kHostWaitRecord, -1, record));
  }
  const bool is_for_all = event.stream < 0;
  add(event_here(is_for_all ? TraceEventKind::kHostWaitDevice : TraceEventKind::kHostWaitStream,
                 event.stream,
                 0));
}

void TraceRecorder::follow_graphs(const onerank_virtual_gpu_event& event) {
  captured_here = nullptr;
  if (event.kind == ONERANK_VIRTUAL_GPU_CAPTURE) capturing_ = true;
  if (event.kind == ONERANK_VIRTUAL_GPU_CAPTURED) capturing_ = false;
  if (event.kind == ONERANK_VIRTUAL_GPU_GRAPH_LAUNCHED) is_launching_graph = false;
  if (event.kind == ONERANK_VIRTUAL_GPU_GRAPH_LAUNCH) {
    is_launching_graph = true;
    has_launched_graph = false;
  }
}

void TraceRecorder::device_event(const onerank_virtual_gpu_event& event) {
  const std::lock_guard lock(mutex_);
  if (is_answering) {
    if (event.captured != 0) captured_[event.captured].is_of_nccl = true;
    return;
  }
  follow_graphs(event);
  if (event.kind == ONERANK_VIRTUAL_GPU_CAPTURED_WORK) return add_captured(event);
  if (event.kind == ONERANK_VIRTUAL_GPU_RECORD) last_record_ = static_cast<int64_t>(event.record);
  if (event.is_timed != 0) begin_clock();
  if (!follows()) return;
  const auto captured = captured_.find(event.captured);
  if (captured != captured_.end()) {
    if (captured->second.is_of_nccl) return;
    captured_here = &captured->second.place;
  }
  add_event(event);
}

void TraceRecorder::add_event(const onerank_virtual_gpu_event& event) {
  const auto record = static_cast<int64_t>(event.record);
  switch (event.kind) {
    case ONERANK_VIRTUAL_GPU_KERNEL:
      return add_kernel(event);
    case ONERANK_VIRTUAL_GPU_PRODUCT:
    case ONERANK_VIRTUAL_GPU_ATTENTION:
      return add_product(event);
    case ONERANK_VIRTUAL_GPU_COPY:
      return add_copy(event);
    case ONERANK_VIRTUAL_GPU_FILL:
      return add_work(
          {.kind = WorkKind::kFill, .name = "fill", .bytes = static_cast<int64_t>(event.bytes)},
          event.stream);
    case ONERANK_VIRTUAL_GPU_RECORD:
      add(event_here(TraceEventKind::kRecord, event.stream, record));
      if (clock_) clock_->record(event.stream, event.record, event.is_timed != 0);
      return;
    case ONERANK_VIRTUAL_GPU_STREAM_WAIT:
      return add(event_here(TraceEventKind::kStreamWait, event.stream, record));
    case ONERANK_VIRTUAL_GPU_HOST_WAIT:
      return add_host_wait(event);
    case ONERANK_VIRTUAL_GPU_MARK:
      return add_mark(event);
    case ONERANK_VIRTUAL_GPU_GRAPH_LAUNCH:
    case ONERANK_VIRTUAL_GPU_GRAPH_LAUNCHED:
    case ONERANK_VIRTUAL_GPU_CAPTURE:
    case ONERANK_VIRTUAL_GPU_CAPTURED:
    case ONERANK_VIRTUAL_GPU_CAPTURED_WORK:
    case ONERANK_VIRTUAL_GPU_MODULE_LOAD:
      return;
  }
}

void TraceRecorder::start_clock() {
  const std::lock_guard lock(mutex_);
  begin_clock();
}

void TraceRecorder::begin_clock() {
  if (clock_ || device_.gpu.empty()) return;
  clock_.emplace(device_);
  clocked_ = true;
}

std::optional<double> TraceRecorder::seconds_between(uint64_t start, uint64_t end) const {
  const std::lock_guard lock(mutex_);
  return clock_ ? clock_->seconds_between(start, end) : std::nullopt;
}

void TraceRecorder::nccl_called(const onerank_nccl_call& call, int stream, uint64_t mark) {
  is_answering = true;
  if (!follows() && mark == 0) return;
  const TraceWork work = nccl_work(call);
  const std::lock_guard lock(mutex_);
  if (mark != 0) return capture_call(call, work, mark);
  if (call.group == 0) return add_work(work, stream);
  if (recording_ && traced_.add_to_group(call, work)) traced_.add(launch_here(stream, -1));
  if (clock_) clock_->calls(call, work, stream);
}

void TraceRecorder::capture_call(const onerank_nccl_call& call,
                                 const TraceWork& work,
                                 uint64_t mark) {
  std::optional<NcclGroup>& own = captured_[mark].calls;
  if (call.group == 0) {
    own.emplace(call, work);
    return;
  }
  const auto [first, is_new] = captured_groups_.try_emplace(NcclGroup::key_of(call, work), mark);
  if (is_new) {
    own.emplace(call, work);
  } else {
    captured_[first->second].calls->add(call, work);
  }
}

/// Of a group its first call has a work.
void TraceRecorder::add_mark(const onerank_virtual_gpu_event& event) {
  const auto captured = captured_.find(event.captured);
  if (captured == captured_.end() || !captured->second.calls) return;
  add_work(captured->second.calls->work(), event.stream);
}

void TraceRecorder::nccl_answered() { is_answering = false; }

std::vector<int64_t> TraceRecorder::product_devices() const {
  const std::lock_guard lock(mutex_);
  return {product_devices_.begin(), product_devices_.end()};
}

std::optional<Trace> TraceRecorder::trace() const {
  const std::lock_guard lock(mutex_);
  return traced_.trace(tracker_);
}

}  // namespace sim
