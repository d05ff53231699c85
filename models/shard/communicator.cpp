#include "models/shard/communicator.h"

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <vector>

#include "models/shard/host_work.h"

namespace models {
namespace {

c10d::AllreduceOptions all_reduce_options(c10d::ReduceOp::RedOpType operation, bool async) {
  c10d::AllreduceOptions options;
  options.reduceOp = operation;
  options.asyncOp = async;
  return options;
}

c10::intrusive_ptr<c10d::Work> gather(c10d::Backend& backend,
                                      at::Tensor& output,
                                      at::Tensor& input,
                                      bool async) {
  c10d::AllgatherOptions options;
  options.asyncOp = async;
  return backend._allgather_base(output, input, options);
}

c10::intrusive_ptr<c10d::Work> scatter_sum(c10d::Backend& backend,
                                           at::Tensor& output,
                                           at::Tensor& input,
                                           bool async) {
  c10d::ReduceScatterOptions options;
  options.asyncOp = async;
  return backend._reduce_scatter_base(output, input, options);
}

c10::intrusive_ptr<c10d::Work> exchange(c10d::Backend& backend,
                                        at::Tensor& output,
                                        at::Tensor& input,
                                        std::vector<int64_t>& received,
                                        std::vector<int64_t>& sent,
                                        bool async) {
  c10d::AllToAllOptions options;
  options.asyncOp = async;
  return backend.alltoall_base(output, input, received, sent, options);
}

/// A synchronous call on a GPU may return no work at all.
void finish(const c10::intrusive_ptr<c10d::Work>& work) {
  if (work) work->wait();
}

}  // namespace

PendingCall::PendingCall() = default;
PendingCall::PendingCall(c10::intrusive_ptr<c10d::Work> work) : work_(std::move(work)) {}
PendingCall::~PendingCall() = default;
PendingCall::PendingCall(PendingCall&&) noexcept = default;
PendingCall& PendingCall::operator=(PendingCall&&) noexcept = default;

void PendingCall::wait() {
  finish(work_);
  work_.reset();
}

bool PendingCall::done() const { return !work_ || work_->isCompleted(); }

Communicator::Communicator(c10::intrusive_ptr<c10d::Backend> backend, Collectives collectives)
    : backend_(std::move(backend)), is_functional_(collectives == Collectives::kFunctional) {}
Communicator::~Communicator() = default;

/// Of the functional ones the host dispatches their own operator, c10d's, _wrap_tensor_autograd and
/// wait_tensor; the backend itself is no operator.
bool Communicator::runs_beside() const {
  constexpr int kFunctionalOperators = 4;
  if (is_functional_) dispatch_on_host(kFunctionalOperators);
  return is_functional_;
}

int64_t Communicator::size() const { return backend_->getSize(); }
int64_t Communicator::index() const { return backend_->getRank(); }

void Communicator::all_reduce(at::Tensor tensor) {
  std::vector<at::Tensor> tensors{std::move(tensor)};
  finish(backend_->allreduce(tensors, all_reduce_options(c10d::ReduceOp::SUM, runs_beside())));
}

void Communicator::all_reduce_max(at::Tensor tensor) {
  std::vector<at::Tensor> tensors{std::move(tensor)};
  finish(backend_->allreduce(tensors, all_reduce_options(c10d::ReduceOp::MAX, runs_beside())));
}

void Communicator::all_reduce_max(std::vector<at::Tensor> tensors) {
  c10d::AllreduceCoalescedOptions options;
  options.reduceOp = c10d::ReduceOp::MAX;
  options.asyncOp = runs_beside();
  finish(backend_->allreduce_coalesced(tensors, options));
}

void Communicator::all_gather(at::Tensor output, at::Tensor input) {
  finish(gather(*backend_, output, input, runs_beside()));
}

void Communicator::reduce_scatter(at::Tensor output, at::Tensor input) {
  finish(scatter_sum(*backend_, output, input, runs_beside()));
}

void Communicator::all_to_all(at::Tensor output,
                              at::Tensor input,
                              std::vector<int64_t> received,
                              std::vector<int64_t> sent) {
  finish(exchange(*backend_, output, input, received, sent, false));
}

void Communicator::send(at::Tensor tensor, int64_t to_index, int tag) {
  start_send(std::move(tensor), to_index, tag).wait();
}

void Communicator::recv(at::Tensor tensor, int64_t from_index, int tag) {
  start_recv(std::move(tensor), from_index, tag).wait();
}

PendingCall Communicator::start_all_reduce(at::Tensor tensor) {
  std::vector<at::Tensor> tensors{std::move(tensor)};
  return PendingCall(backend_->allreduce(tensors, all_reduce_options(c10d::ReduceOp::SUM, true)));
}

PendingCall Communicator::start_all_gather(at::Tensor output, at::Tensor input) {
  return PendingCall(gather(*backend_, output, input, true));
}

PendingCall Communicator::start_send(at::Tensor tensor, int64_t to_index, int tag) {
  std::vector<at::Tensor> tensors{std::move(tensor)};
  return PendingCall(backend_->send(tensors, static_cast<int>(to_index), tag));
}

PendingCall Communicator::start_recv(at::Tensor tensor, int64_t from_index, int tag) {
  std::vector<at::Tensor> tensors{std::move(tensor)};
  return PendingCall(backend_->recv(tensors, static_cast<int>(from_index), tag));
}

PendingCall Communicator::start_all_to_all(at::Tensor output, at::Tensor input) {
  return start_all_to_all(std::move(output), std::move(input), {}, {});  // equal parts
}

PendingCall Communicator::start_all_to_all(at::Tensor output,
                                           at::Tensor input,
                                           std::vector<int64_t> received,
                                           std::vector<int64_t> sent) {
  return PendingCall(exchange(*backend_, output, input, received, sent, true));
}

PendingCall Communicator::start_all_gather(std::vector<at::Tensor> outputs,
                                           std::vector<at::Tensor> inputs) {
  c10d::AllgatherOptions options;
  options.asyncOp = true;
  return PendingCall(backend_->allgather_into_tensor_coalesced(outputs, inputs, options));
}

PendingCall Communicator::start_reduce_scatter(at::Tensor output, at::Tensor input) {
  return PendingCall(scatter_sum(*backend_, output, input, true));
}

PendingCall Communicator::start_broadcast(at::Tensor tensor, int64_t from_index) {
  c10d::BroadcastOptions options;
  options.rootRank = from_index;
  options.asyncOp = true;
  std::vector<at::Tensor> tensors{std::move(tensor)};
  return PendingCall(backend_->broadcast(tensors, options));
}

}  // namespace models
