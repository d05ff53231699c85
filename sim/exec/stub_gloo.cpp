#include "sim/exec/stub_gloo.h"

#include <malloc.h>

#include <memory>
#include <new>
#include <stdexcept>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <utility>
#include <vector>

#include "comm_stub/stub_backend.h"

namespace sim {
namespace {

using c10d::Backend;
using Tensors = std::vector<at::Tensor>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

/// Hands every call on to the stub. Python reads `options` of a ProcessGroupGloo without a virtual
/// function: up to there the members are those of that class (ProcessGroupGloo.hpp of torch 2.11).
class StubGloo final : public Backend {
 public:
  StubGloo(int rank,
           int size,
           c10::intrusive_ptr<Options> options,
           c10::intrusive_ptr<Backend> stub)
      : Backend(rank, size), options_(std::move(options)), stub_(std::move(stub)) {}

  const std::string getBackendName() const override { return "gloo"; }
  c10::intrusive_ptr<Options> getBackendOptions() override { return options_; }
  void setTimeout(std::chrono::milliseconds) override {}
  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override { return stub_->getSequenceNumberForGroup(); }
  void waitForPendingWorks() override {}
  void monitoredBarrier(const c10d::BarrierOptions&, bool) override {}

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    return stub_->broadcast(tensors, options);
  }
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    return stub_->allreduce(tensors, options);
  }
  WorkPtr allreduce_coalesced(Tensors& tensors,
                              const c10d::AllreduceCoalescedOptions& options) override {
    return stub_->allreduce_coalesced(tensors, options);
  }
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
    return stub_->reduce(tensors, options);
  }
  WorkPtr allgather(std::vector<Tensors>& outputs,
                    Tensors& inputs,
                    const c10d::AllgatherOptions& options) override {
    return stub_->allgather(outputs, inputs, options);
  }
  WorkPtr _allgather_base(at::Tensor& output,
                          at::Tensor& input,
                          const c10d::AllgatherOptions& options) override {
    return stub_->_allgather_base(output, input, options);
  }
  WorkPtr allgather_coalesced(std::vector<Tensors>& outputs,
                              Tensors& inputs,
                              const c10d::AllgatherOptions& options) override {
    return stub_->allgather_coalesced(outputs, inputs, options);
  }
  WorkPtr gather(std::vector<Tensors>& outputs,
                 Tensors& inputs,
                 const c10d::GatherOptions& options) override {
    return stub_->gather(outputs, inputs, options);
  }
  WorkPtr scatter(Tensors& outputs,
                  std::vector<Tensors>& inputs,
                  const c10d::ScatterOptions& options) override {
    return stub_->scatter(outputs, inputs, options);
  }
  WorkPtr reduce_scatter(Tensors& outputs,
                         std::vector<Tensors>& inputs,
                         const c10d::ReduceScatterOptions& options) override {
    return stub_->reduce_scatter(outputs, inputs, options);
  }
  WorkPtr _reduce_scatter_base(at::Tensor& output,
                               at::Tensor& input,
                               const c10d::ReduceScatterOptions& options) override {
    return stub_->_reduce_scatter_base(output, input, options);
  }
  WorkPtr alltoall_base(at::Tensor& output,
                        at::Tensor& input,
                        std::vector<int64_t>& output_splits,
                        std::vector<int64_t>& input_splits,
                        const c10d::AllToAllOptions& options) override {
    return stub_->alltoall_base(output, input, output_splits, input_splits, options);
  }
  WorkPtr send(Tensors& tensors, int destination, int tag) override {
    return stub_->send(tensors, destination, tag);
  }
  WorkPtr recv(Tensors& tensors, int source, int tag) override {
    return stub_->recv(tensors, source, tag);
  }
  WorkPtr recvAnysource(Tensors& tensors, int tag) override {
    return stub_->recvAnysource(tensors, tag);
  }
  WorkPtr barrier(const c10d::BarrierOptions& options) override { return stub_->barrier(options); }

 private:
  std::shared_ptr<void> store_;  // Gloo's; here for its place
  c10::intrusive_ptr<Options> options_;
  c10::intrusive_ptr<Backend> stub_;
};

}  // namespace

void make_gloo(void* place, const void*, int rank, int size, void* options) {
  // c10's intrusive_ptr allocated the object by itself: its size is that of the block.
  if (malloc_usable_size(place) < sizeof(StubGloo)) {
    throw std::logic_error("ProcessGroupGloo of this torch is smaller than the stub");
  }
  const estimator::RankGroup group{.kind = estimator::GroupKind::kWorld,
                                   .spans = {{.count = size, .stride = 1}}};
  auto stub = comm_stub::make_stub_backend(group, rank, [](const estimator::CollectiveCall&) {});
  auto& given = *static_cast<c10::intrusive_ptr<Backend::Options>*>(options);
  new (place) StubGloo(rank, size, given, std::move(stub));
}

}  // namespace sim
