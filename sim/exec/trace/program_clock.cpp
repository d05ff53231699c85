#include "sim/exec/trace/program_clock.h"

#include <stdexcept>

#include "estimator/replay/work_price.h"

namespace sim {
namespace {

using estimator::TraceEventKind;
using estimator::TraceWork;

estimator::ClusterConfig cluster_of(const ClockedDevice& device) {
  const estimator::Gpu* const gpu = estimator::find_gpu(device.gpu);
  if (gpu == nullptr) throw std::logic_error("no clock is known for the GPU " + device.gpu);
  return estimator::usual_cluster(*gpu, device.world_size, device.gpus_per_node);
}

void wait(const TracedEvent& event, DeviceClock& clock) {
  const auto record = static_cast<uint64_t>(event.item);
  if (event.kind == TraceEventKind::kStreamWait) clock.stream_waits(event.stream, record);
  if (event.kind == TraceEventKind::kHostWaitRecord) clock.host_waits_for_record(record);
  if (event.kind == TraceEventKind::kHostWaitStream) clock.host_waits_for_stream(event.stream);
  if (event.kind == TraceEventKind::kHostWaitDevice) clock.host_waits_for_device();
}

}  // namespace

ProgramClock::ProgramClock(const ClockedDevice& device)
    : device_(device),
      cluster_(cluster_of(device)),
      rates_(gpu_of(cluster_), nullptr, {}, 1, estimator::Priced::kKernels),
      fabric_(fabric_of(cluster_)) {}

void ProgramClock::range_started(const std::string& name) {
  const auto known = rates_.launch().host_ranges.find(name);
  if (known != rates_.launch().host_ranges.end()) clock_.host_works(known->second);
}

/// The costs are those of estimator/replay/rank_player.cpp.
void ProgramClock::issued(const TracedEvent& event, bool is_of_operator) {
  close_group();
  const estimator::LaunchCost& cost = rates_.launch();
  clock_.host_works(static_cast<double>(event.operators) * cost.host_operator_seconds);
  if (event.issue == estimator::HostIssue::kCall) {
    clock_.host_works(cost.call_seconds(event.operators, is_of_operator));
  }
  wait(event, clock_);
  if (!trace_.is_on()) return;
  wait(event, trace_.clock());
  trace_.catch_up();
}

void ProgramClock::record(int stream, uint64_t record, bool is_asked_for) {
  clock_.record(stream, record, is_asked_for);
  if (trace_.is_on()) trace_.clock().record(stream, record, false);
}

double ProgramClock::price(const TraceWork& work) const {
  if (work.communicator < 0) return work_price(work, {}, rates_, fabric_).seconds;
  TraceWork call = work;
  call.communicator = 0;
  const auto number = static_cast<int>(work.communicator);
  return work_price(call, {device_.communicator(number)}, rates_, fabric_).seconds;
}

void ProgramClock::runs(const TraceWork& work, int stream, uint32_t call) {
  const double seconds = price(work);
  clock_.run(stream, seconds);
  trace_.ran(work, call, stream, seconds);
}

void ProgramClock::calls(const onerank_nccl_call& call, const TraceWork& work, int stream) {
  const NcclGroup::Key key = NcclGroup::key_of(call, work);
  if (group_ && group_->key == key) return group_->calls.add(call, work);
  close_group();
  clock_.host_works(rates_.launch().host_call_seconds);
  group_ = OpenGroup{
      .key = key, .calls = NcclGroup(call, work), .stream = stream, .call = called(work.kind)};
}

void ProgramClock::close_group() {
  if (!group_) return;
  runs(group_->calls.work(), group_->stream, group_->call);
  group_.reset();
}

std::optional<double> ProgramClock::seconds_between(uint64_t start, uint64_t end) const {
  return clock_.seconds_between(start, end);
}

}  // namespace sim
