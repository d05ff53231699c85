// The Work of a call that is already complete when it returns.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <functional>
#include <vector>

#include "comm_stub/torch_release.h"

namespace comm_stub {

class StubWork final : public Work {
 public:
  /// Tensors that it keeps alive: until wait(), or as long as it lives.
  struct Held {
    std::vector<at::Tensor> outputs, kept;
    std::vector<at::Tensor> until_wait;
  };

  /// `waited`, if it is not empty, is called by the first wait.
  StubWork(int rank,
           c10d::OpType op,
           Held held,
           std::function<void()> waited = {},
           int source_rank = -1);

  bool wait(std::chrono::milliseconds timeout) override;
  void synchronize() override;
  void blockCurrentStream() override {}
  std::vector<at::Tensor> result() override { return held_.outputs; }
  int sourceRank() const override { return source_rank_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFutureResult() override;

 private:
  Held held_;
  std::function<void()> waited_;
  int source_rank_;
};

}  // namespace comm_stub
