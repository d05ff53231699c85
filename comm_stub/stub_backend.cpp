#include "comm_stub/stub_backend.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <limits>
#include <stdexcept>
#include <utility>

#include "comm_stub/stub_backend_impl.h"
#include "comm_stub/stub_work.h"

namespace comm_stub {
namespace {

/// The device whose stream a barrier would run on, if the call or the backend names one.
std::optional<at::Device> barrier_device(const c10d::BarrierOptions& options,
                                         std::optional<at::Device> bound) {
  if (options.device) return options.device;
  if (options.device_ids.empty()) return bound;
  return at::Device(at::kCUDA, static_cast<at::DeviceIndex>(options.device_ids.front()));
}

int checked_size(const estimator::RankGroup& group, int64_t member_index) {
  const int64_t size = group.size();
  if (size > std::numeric_limits<int>::max() || member_index < 0 || member_index >= size) {
    throw std::logic_error(
        fmt::format("make_stub_backend: no member {} in a group of {}", member_index, size));
  }
  return static_cast<int>(size);
}

}  // namespace

c10::intrusive_ptr<c10d::Backend> make_stub_backend(const estimator::RankGroup& group,
                                                    int64_t member_index,
                                                    CallSink sink,
                                                    StubOptions options) {
  return c10::make_intrusive<StubBackend>(group, member_index, std::move(sink), std::move(options));
}

StubBackend::StubBackend(const estimator::RankGroup& group,
                         int64_t member_index,
                         CallSink sink,
                         StubOptions options)
    : Backend(static_cast<int>(member_index), checked_size(group, member_index)),
      group_(group),
      sink_(std::move(sink)),
      options_(std::move(options)) {}

c10::intrusive_ptr<c10d::Backend::Options> StubBackend::getBackendOptions() {
  auto options = c10::make_intrusive<Options>(getBackendName());
  name_group(*options, estimator::to_string(group_.kind));
  return options;
}

void StubBackend::check_peer(const Checks& check, int peer, const char* role) const {
  check.member(peer, role);
  if (is_me(peer) && !batch_) check.refuse("{} {} is this rank itself", role, peer);
}

void StubBackend::record(estimator::CollectiveCall call) {
  call.group = group_.kind;
  call.group_size = getSize();
  ++calls_;
  sink_(call);
}

void StubBackend::record_message(estimator::CollectiveKind kind,
                                 const at::Tensor& tensor,
                                 int peer) {
  record({.kind = kind,
          .dtype = dtype_of(tensor),
          .bytes = bytes_of(tensor),
          .peer = peer,
          .asynchronous = true});
}

Tensors StubBackend::flat_buffer(const Tensors& list) const {
  if (!have_one_shape(list)) return {};
  const at::DisableRecordFunctionGuard unseen;
  const at::Tensor& entry = list.front();
  return {at::empty({getSize(), entry.numel()}, entry.options())};
}

void StubBackend::add_to_batch(const Finished& call) {
  batch_->empty = false;
  // ProcessGroupNCCL holds no message of a batch: it leaves that to the allocator (recordStream).
  if (!call.asynchronous || c10d::isP2POp(call.op)) return;
  for (const Tensors* tensors : {&call.outputs, &call.inputs, &call.kept}) {
    batch_->held.insert(batch_->held.end(), tensors->begin(), tensors->end());
  }
}

WorkPtr StubBackend::complete(Finished call) {
  if (options_.on_tensor) {
    for (const Tensors* tensors : {&call.outputs, &call.inputs, &call.kept}) {
      for (const at::Tensor& tensor : *tensors) options_.on_tensor(tensor);
    }
  }
  if (!call.asynchronous) {
    call.inputs.clear();
    call.kept.clear();
  }
  if (batch_) add_to_batch(call);
  const bool is_pending = call.asynchronous && options_.on_begun;
  return c10::make_intrusive<StubWork>(
      getRank(),
      call.op,
      StubWork::Held{.outputs = std::move(call.outputs),
                     .kept = std::move(call.kept),
                     .until_wait = std::move(call.inputs)},
      is_pending ? options_.on_begun(group_.kind) : std::function<void()>(),
      call.source);
}

WorkPtr StubBackend::barrier(const c10d::BarrierOptions& options) {
  record({.kind = estimator::CollectiveKind::kBarrier,
          .dtype = {},
          .asynchronous = is_asynchronous(options)});
  Finished call{.op = c10d::OpType::BARRIER, .asynchronous = is_asynchronous(options)};
  if (const auto device = barrier_device(options, getBoundDeviceId())) {
    const at::DisableRecordFunctionGuard unseen;
    call.kept = {at::empty({1}, at::TensorOptions(at::kFloat).device(device))};
  }
  return complete(std::move(call));
}

void StubBackend::startCoalescing() { batch_ = Batch{}; }

WorkPtr StubBackend::endCoalescing() {
  if (!batch_) checks("endCoalescing").refuse("called without startCoalescing");
  Batch batch = std::move(*batch_);
  batch_.reset();
  if (batch.empty) return nullptr;
  return complete({.op = c10d::OpType::COALESCED, .inputs = std::move(batch.held)});
}

StubGroups make_stub_groups(const estimator::ParallelLayout& layout,
                            int64_t rank,
                            const std::vector<estimator::GroupKind>& kinds,
                            const CallSink& sink,
                            const StubOptions& options) {
  StubGroups backends;
  for (const estimator::GroupKind kind : kinds) {
    const estimator::RankGroup group = layout.group(kind, rank);
    const int64_t member_index = group.index_of(rank);
    if (group.size() == 1 || member_index < 0) continue;
    backends[kind] = make_stub_backend(group, member_index, sink, options);
  }
  return backends;
}

}  // namespace comm_stub
