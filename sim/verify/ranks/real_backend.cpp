#include "sim/verify/ranks/real_backend.h"

#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include <stdexcept>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <utility>

#include "sim/recording/counting_cpu_allocator.h"

namespace sim {
namespace {

using c10d::OpType;
using estimator::CollectiveCall;
using estimator::CollectiveKind;
using Tensors = std::vector<at::Tensor>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

/// The same memory, without a hold on it.
at::Tensor borrowed(const at::Tensor& tensor) {
  return at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(), tensor.options());
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

[[noreturn]] void fail(const std::string& call, const std::exception& error) {
  throw std::runtime_error(fmt::format("{} failed: {}", call, first_line(error.what())));
}

/// What a call holds, and the work that it waits for.
struct Held {
  WorkPtr work;
  std::string call;
  Tensors inputs;
  Tensors outputs;
};

class HeldWork final : public c10d::Work {
 public:
  HeldWork(int rank, OpType op, Held held) : Work(rank, op), held_(std::move(held)) {}

  bool wait(std::chrono::milliseconds timeout) override {
    if (!held_.work) return true;
    const NotCounted network;
    try {
      held_.work->wait(timeout);
    } catch (const std::exception& error) {
      fail(held_.call, error);
    }
    held_.work.reset();
    held_.inputs.clear();
    return true;
  }
  bool isCompleted() override { return !held_.work || held_.work->isCompleted(); }
  bool isSuccess() const override { return !held_.work || held_.work->isSuccess(); }
  std::vector<at::Tensor> result() override { return held_.outputs; }
  void synchronize() override { wait(kNoTimeout); }

 private:
  Held held_;
};

class RealBackend final : public c10d::Backend {
 public:
  RealBackend(RealGroup group, estimator::GroupCallSink sink)
      : Backend(group.backend->getRank(), group.backend->getSize()),
        group_(std::move(group)),
        sink_(std::move(sink)) {}

  const std::string getBackendName() const override { return group_.backend->getBackendName(); }

  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    return call(
        {.kind = CollectiveKind::kAllReduce, .asynchronous = options.asyncOp},
        {.op = OpType::ALLREDUCE, .sized = tensors.at(0), .outputs = tensors},
        [&](Tensors&, Tensors& outputs) { return group_.backend->allreduce(outputs, options); });
  }

  WorkPtr _allgather_base(at::Tensor& output,
                          at::Tensor& input,
                          const c10d::AllgatherOptions& options) override {
    return call(
        {.kind = CollectiveKind::kAllGather, .asynchronous = options.asyncOp},
        {.op = OpType::_ALLGATHER_BASE, .sized = output, .inputs = {input}, .outputs = {output}},
        [&](Tensors& inputs, Tensors& outputs) {
          return group_.backend->_allgather_base(outputs[0], inputs[0], options);
        });
  }

  WorkPtr _reduce_scatter_base(at::Tensor& output,
                               at::Tensor& input,
                               const c10d::ReduceScatterOptions& options) override {
    return call({.kind = CollectiveKind::kReduceScatter, .asynchronous = options.asyncOp},
                {.op = OpType::_REDUCE_SCATTER_BASE,
                 .sized = input,
                 .inputs = {input},
                 .outputs = {output}},
                [&](Tensors& inputs, Tensors& outputs) {
                  return group_.backend->_reduce_scatter_base(outputs[0], inputs[0], options);
                });
  }

  WorkPtr alltoall_base(at::Tensor& output,
                        at::Tensor& input,
                        std::vector<int64_t>& output_sizes,
                        std::vector<int64_t>& input_sizes,
                        const c10d::AllToAllOptions& options) override {
    return call(
        {.kind = CollectiveKind::kAllToAll, .asynchronous = options.asyncOp},
        {.op = OpType::ALLTOALL_BASE, .sized = input, .inputs = {input}, .outputs = {output}},
        [&](Tensors& inputs, Tensors& outputs) {
          return group_.backend->alltoall_base(
              outputs[0], inputs[0], output_sizes, input_sizes, options);
        });
  }

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    return call(
        {.kind = CollectiveKind::kBroadcast,
         .peer = options.rootRank,
         .asynchronous = options.asyncOp},
        {.op = OpType::BROADCAST, .sized = tensors.at(0), .outputs = tensors},
        [&](Tensors&, Tensors& outputs) { return group_.backend->broadcast(outputs, options); });
  }

  WorkPtr send(Tensors& tensors, int destination, int tag) override {
    return call(
        {.kind = CollectiveKind::kSend, .peer = destination, .asynchronous = true},
        {.op = OpType::SEND, .sized = tensors.at(0), .inputs = tensors},
        [&](Tensors& inputs, Tensors&) { return group_.backend->send(inputs, destination, tag); });
  }

  WorkPtr recv(Tensors& tensors, int source, int tag) override {
    return call(
        {.kind = CollectiveKind::kRecv, .peer = source, .asynchronous = true},
        {.op = OpType::RECV, .sized = tensors.at(0), .outputs = tensors},
        [&](Tensors&, Tensors& outputs) { return group_.backend->recv(outputs, source, tag); });
  }

 private:
  struct Operands {
    OpType op;
    const at::Tensor& sized;  ///< the tensor whose bytes are the call's size
    Tensors inputs = {};
    Tensors outputs = {};
  };

  template <class Start>
  WorkPtr call(CollectiveCall call, Operands operands, const Start& start) {
    call.group = group_.kind;
    call.group_size = getSize();
    call.dtype = c10::toString(operands.sized.scalar_type());
    call.bytes = static_cast<int64_t>(operands.sized.nbytes());
    const estimator::GroupCall made{.call = std::move(call), .members = group_.members};
    sink_(made);

    Held held{.call = to_text(made),
              .inputs = std::move(operands.inputs),
              .outputs = std::move(operands.outputs)};
    Tensors inputs, outputs;
    for (const at::Tensor& tensor : held.inputs) inputs.push_back(borrowed(tensor));
    for (const at::Tensor& tensor : held.outputs) outputs.push_back(borrowed(tensor));
    try {
      const NotCounted network;
      held.work = start(inputs, outputs);
    } catch (const std::exception& error) {
      fail(held.call, error);
    }
    return c10::make_intrusive<HeldWork>(getRank(), operands.op, std::move(held));
  }

  const RealGroup group_;
  const estimator::GroupCallSink sink_;
};

}  // namespace

c10::intrusive_ptr<c10d::Backend> record_calls(RealGroup group, estimator::GroupCallSink sink) {
  return c10::make_intrusive<RealBackend>(std::move(group), std::move(sink));
}

}  // namespace sim
