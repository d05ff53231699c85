// The Work of a call that is already complete when it returns.
#pragma once

#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <vector>

namespace comm_stub {

class StubWork final : public c10d::Work {
 public:
  /// Keeps `outputs` and `kept` alive as long as this object lives, and `held` until wait().
  StubWork(int rank,
           c10d::OpType op,
           std::vector<at::Tensor> outputs,
           std::vector<at::Tensor> kept,
           std::vector<at::Tensor> held,
           int source_rank = -1);

  bool wait(std::chrono::milliseconds timeout) override;
  void synchronize() override;
  void blockCurrentStream() override {}
  std::vector<at::Tensor> result() override { return outputs_; }
  int sourceRank() const override { return source_rank_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFutureResult() override;

 private:
  std::vector<at::Tensor> outputs_;
  std::vector<at::Tensor> kept_;
  std::vector<at::Tensor> held_;
  int source_rank_;
};

}  // namespace comm_stub
