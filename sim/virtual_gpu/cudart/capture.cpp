#include "sim/virtual_gpu/cudart/capture.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <utility>

#include "sim/virtual_gpu/cudart/device.h"

namespace virtual_gpu {
namespace {

/// Whether it only orders the works of streams, or tells where something else is in them.
bool is_no_work(const Event& event) {
  return event.kind == ONERANK_VIRTUAL_GPU_RECORD ||
         event.kind == ONERANK_VIRTUAL_GPU_STREAM_WAIT || event.kind == ONERANK_VIRTUAL_GPU_MARK;
}

void run_now(const Work& work, CUstream_st* stream) {
  if (!is_no_work(work.event)) add_work(stream);
  if (work.kernel != nullptr) kernels().count_launch(*work.kernel);
  if (work.gemm) work_log().count_gemm(*work.gemm);
  Event event = work.event;
  event.stream = work.branch.value_or(sequence_of(stream));
  work_log().tell(event);
  if (work.effect) work.effect();
}

/// The points of a graph are records of their own in each launch.
class LaunchedPoints {
 public:
  void run(Work work, CUstream_st* stream) {
    const uint64_t point = work.event.record;
    if (work.event.kind == ONERANK_VIRTUAL_GPU_RECORD) {
      records_[point] = run_record(std::move(work), stream);
      return;
    }
    if (work.event.kind == ONERANK_VIRTUAL_GPU_STREAM_WAIT) {
      const auto record = records_.find(point);
      if (record == records_.end()) return;  // of an older capture
      work.event.record = record->second;
    }
    run_work(work, stream);
  }

 private:
  std::map<uint64_t, uint64_t> records_;  // by point
};

}  // namespace

Capture& capture() {
  static auto* const capture = new Capture;
  return *capture;
}

void run_work(const Work& work, CUstream_st* stream) {
  if (capture().keep(work, stream) == 0) run_now(work, stream);
}

uint64_t run_record(Work work, CUstream_st* stream) {
  static std::atomic<uint64_t> records{0}, points{0};
  const bool is_captured = capture().id_of(stream) != 0;
  work.event.kind = ONERANK_VIRTUAL_GPU_RECORD;
  work.event.record = is_captured ? ++points : ++records;
  run_work(work, stream);
  return work.event.record;
}

void run_graph(const CapturedGraph& graph, CUstream_st* stream) {
  const int number = sequence_of(stream);
  work_log().tell({.kind = ONERANK_VIRTUAL_GPU_GRAPH_LAUNCH, .stream = number, .graph = graph.id});
  LaunchedPoints points;
  for (const CapturedWork& captured : graph.works) points.run(captured.to_run(), stream);
  for (const MemoryPart& part : graph.written) shadow().forget(part.address, part.bytes);
  work_log().tell(
      {.kind = ONERANK_VIRTUAL_GPU_GRAPH_LAUNCHED, .stream = number, .graph = graph.id});
}

CapturedWork::CapturedWork(const Work& captured) : work(captured) {
  const Event& event = work.event;
  if (event.address_count > 0) {
    addresses.assign(event.addresses, event.addresses + event.address_count);
  }
  if (event.number_count > 0) numbers.assign(event.numbers, event.numbers + event.number_count);
  if (event.product != nullptr) product = *event.product;
  if (event.attention != nullptr) attention = *event.attention;
}

Work CapturedWork::to_run() const {
  Work own = work;
  own.event.addresses = addresses.data();
  own.event.numbers = numbers.data();
  own.event.product = product ? &*product : nullptr;
  own.event.attention = attention ? &*attention : nullptr;
  return own;
}

size_t CapturedGraph::nodes() const {
  return static_cast<size_t>(std::count_if(works.begin(), works.end(), [](const auto& captured) {
    return !is_no_work(captured.work.event);
  }));
}

bool Capture::begin(CUstream_st* origin) {
  Event event{.kind = ONERANK_VIRTUAL_GPU_CAPTURE, .stream = sequence_of(origin)};
  {
    const std::lock_guard lock(mutex_);
    if (is_active_) return false;
    is_active_ = true;
    is_valid_ = true;
    event.graph = ++id_;
    origin_ = event.stream;
    streams_ = {origin_};
    graph_ = {.id = id_, .works = {}, .written = {}};
  }
  work_log().tell(event);
  return true;
}

std::shared_ptr<const CapturedGraph> Capture::end(CUstream_st* origin) {
  const uint64_t id = id_of(origin);
  auto captured = take(origin);
  if (id != 0 && !is_active_) {
    work_log().tell(
        {.kind = ONERANK_VIRTUAL_GPU_CAPTURED, .stream = sequence_of(origin), .graph = id});
  }
  return captured;
}

std::shared_ptr<const CapturedGraph> Capture::take(CUstream_st* origin) {
  const std::lock_guard lock(mutex_);
  if (!is_active_ || sequence_of(origin) != origin_) return nullptr;
  is_active_ = false;
  streams_.clear();
  if (!is_valid_) return nullptr;
  return std::make_shared<const CapturedGraph>(std::exchange(graph_, {}));
}

uint64_t Capture::id_of(CUstream_st* stream) const {
  if (!is_active_) return 0;
  const std::lock_guard lock(mutex_);
  return streams_.count(sequence_of(stream)) != 0 ? id_ : 0;
}

void Capture::join(CUstream_st* stream) {
  const std::lock_guard lock(mutex_);
  if (is_active_) streams_.insert(sequence_of(stream));
}

void Capture::invalidate() {
  const std::lock_guard lock(mutex_);
  is_valid_ = false;
}

uint64_t Capture::keep(const Work& work, CUstream_st* stream) {
  if (!is_active_) return 0;
  const int number = sequence_of(stream);
  Event event = work.event;
  {
    const std::lock_guard lock(mutex_);
    if (streams_.count(number) == 0) return 0;
    event.captured = ++works_;
    Work& kept = graph_.works.emplace_back(work).work;
    kept.event.captured = event.captured;
    if (!kept.branch && number != origin_) kept.branch = number;
  }
  event.kind = ONERANK_VIRTUAL_GPU_CAPTURED_WORK;
  event.stream = number;
  work_log().tell(event);
  return event.captured;
}

void Capture::values_change(uint64_t address, uint64_t bytes) {
  if (!is_active_) return;
  const std::lock_guard lock(mutex_);
  graph_.written.push_back({address, bytes});
}

}  // namespace virtual_gpu
