// The class behind make_stub_backend(). Each call is checked, recorded, answered and completed, in
// this order; the calls of one family share a file.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/record_function.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm_stub/checks.h"
#include "comm_stub/stub_backend.h"
#include "comm_stub/torch_release.h"

namespace comm_stub {

using WorkPtr = c10::intrusive_ptr<c10d::Work>;

class StubBackend final : public Backend {
 public:
  StubBackend(const estimator::RankGroup& group,
              int64_t member_index,
              CallSink sink,
              StubOptions options);

  const std::string getBackendName() const override { return "stub"; }
  c10::intrusive_ptr<Options> getBackendOptions() override;
  ErrorType getError() override { return ErrorType::SUCCESS; }
  void setTimeout(std::chrono::milliseconds) override {}
  void waitForPendingWorks() override {}
  void setSequenceNumberForGroup() override {}
  /// The number of calls so far.
  uint64_t getSequenceNumberForGroup() override { return calls_; }

  // reductions.cpp
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allreduce_coalesced(Tensors& tensors,
                              const c10d::AllreduceCoalescedOptions& options) override;
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkPtr reduce_scatter(Tensors& outputs,
                         std::vector<Tensors>& input_lists,
                         const c10d::ReduceScatterOptions& options) override;
  WorkPtr _reduce_scatter_base(at::Tensor& output,
                               at::Tensor& input,
                               const c10d::ReduceScatterOptions& options) override;
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs,
                                          Tensors& inputs,
                                          const c10d::ReduceScatterOptions& options) override;

  // gathers.cpp
  WorkPtr allgather(std::vector<Tensors>& output_lists,
                    Tensors& inputs,
                    const c10d::AllgatherOptions& options) override;
  WorkPtr _allgather_base(at::Tensor& output,
                          at::Tensor& input,
                          const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_coalesced(std::vector<Tensors>& output_lists,
                              Tensors& inputs,
                              const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs,
                                          Tensors& inputs,
                                          const c10d::AllgatherOptions& options) override;

  // rooted.cpp
  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  WorkPtr gather(std::vector<Tensors>& output_lists,
                 Tensors& inputs,
                 const c10d::GatherOptions& options) override;
  WorkPtr scatter(Tensors& outputs,
                  std::vector<Tensors>& input_lists,
                  const c10d::ScatterOptions& options) override;

  // exchanges.cpp
  WorkPtr alltoall_base(at::Tensor& output,
                        at::Tensor& input,
                        std::vector<int64_t>& output_split_sizes,
                        std::vector<int64_t>& input_split_sizes,
                        const c10d::AllToAllOptions& options) override;
  WorkPtr alltoall(Tensors& outputs,
                   Tensors& inputs,
                   const c10d::AllToAllOptions& options) override;
  WorkPtr send(Tensors& tensors, int destination, int tag) override;
  WorkPtr recv(Tensors& tensors, int source, int tag) override;
  WorkPtr recvAnysource(Tensors& tensors, int tag) override;

  // stub_backend.cpp
  WorkPtr barrier(const c10d::BarrierOptions& options) override;
  bool supportsCoalescing() const override { return true; }
  void startCoalescing() override;
  /// Null when nothing was called since startCoalescing(), as with ProcessGroupNCCL.
  WorkPtr endCoalescing() override;

 private:
  /// A finished call. If it is asynchronous, `inputs` stay alive until wait() and `kept` as long as
  /// the Work.
  struct Finished {
    c10d::OpType op;
    Tensors outputs = {};
    Tensors inputs = {};
    Tensors kept = {};
    bool asynchronous = true;
    int source = -1;
  };
  /// The calls since startCoalescing().
  struct Batch {
    bool empty = true;
    Tensors held;
  };

  // Record and answer one tensor, or one pair of tensors, of a call that has passed its checks.
  void all_reduce_one(const at::Tensor& tensor, const c10d::AllreduceOptions& options);
  void all_gather_one(const at::Tensor& output,
                      const at::Tensor& input,
                      const c10d::AllgatherOptions& options);
  void reduce_scatter_one(const at::Tensor& output,
                          const at::Tensor& input,
                          const c10d::ReduceScatterOptions& options);

  Checks checks(const char* call) const { return {call, group_}; }
  void check_peer(const Checks& check, int peer, const char* role) const;
  /// Fills in the group and hands the call to the sink.
  void record(estimator::CollectiveCall call);
  void record_message(estimator::CollectiveKind kind, const at::Tensor& tensor, int peer);
  /// Calls `values`, which writes the outputs, unless tensors have no memory.
  template <class Values>
  void write(const Values& values) const;
  /// The flat buffer through which ProcessGroupNCCL copies a list; empty unless all entries have
  /// the same shape.
  Tensors flat_buffer(const Tensors& list) const;
  void add_to_batch(const Finished& call);
  WorkPtr complete(Finished call);
  bool is_me(int64_t member) const { return member == getRank(); }

  estimator::RankGroup group_;
  CallSink sink_;
  StubOptions options_;
  std::optional<Batch> batch_;
  uint64_t calls_ = 0;
};

/// c10's name: "BFloat16".
inline std::string dtype_of(const at::Tensor& tensor) {
  return c10::toString(tensor.scalar_type());
}
inline int64_t bytes_of(const at::Tensor& tensor) { return static_cast<int64_t>(tensor.nbytes()); }
inline int64_t bytes_of(const Tensors& tensors) {
  int64_t bytes = 0;
  for (const at::Tensor& tensor : tensors) bytes += bytes_of(tensor);
  return bytes;
}

/// Active while the stub writes values: its operators build no autograd graph, change no version
/// counters (a network does not either), and are not seen by at::RecordFunction.
class WritingScope {
 public:
  explicit WritingScope(const std::function<void(bool)>& on_writing) : on_writing_(on_writing) {
    if (on_writing_) on_writing_(true);
  }
  ~WritingScope() {
    if (on_writing_) on_writing_(false);
  }
  WritingScope(const WritingScope&) = delete;
  WritingScope& operator=(const WritingScope&) = delete;

 private:
  const std::function<void(bool)>& on_writing_;
  at::DisableRecordFunctionGuard unseen_;
  at::AutoDispatchBelowADInplaceOrView below_autograd_;
};

template <class Values>
void StubBackend::write(const Values& values) const {
  if (!options_.write_values) return;
  const WritingScope scope(options_.on_writing);
  values();
}

}  // namespace comm_stub
