// onerank-rank with a fault, named by the variable TEST_FAULT: what `verify` must find.
#include <ATen/core/Tensor.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/roll.h>

#include <unistd.h>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "sim/rank_process/rank_process_main.h"

namespace {

using estimator::GroupKind;
using Tensors = std::vector<at::Tensor>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

class DoneWork final : public c10d::Work {
 public:
  bool wait(std::chrono::milliseconds) override { return true; }
};

/// Does something else at the third all-reduce, and all others as they should be.
class FaultyBackend final : public c10d::Backend {
 public:
  using Fault =
      std::function<WorkPtr(c10d::Backend& right, Tensors&, const c10d::AllreduceOptions&)>;

  FaultyBackend(c10::intrusive_ptr<c10d::Backend> right, Fault fault)
      : Backend(right->getRank(), right->getSize()), right_(right), fault_(std::move(fault)) {}

  const std::string getBackendName() const override { return "faulty"; }
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    return ++calls_ == 3 ? fault_(*right_, tensors, options) : right_->allreduce(tensors, options);
  }

 private:
  const c10::intrusive_ptr<c10d::Backend> right_;
  const Fault fault_;
  int calls_ = 0;
};

WorkPtr flip_sign(c10d::Backend& right, Tensors& tensors, const c10d::AllreduceOptions& options) {
  right.allreduce(tensors, options)->wait();
  tensors[0].neg_();
  return c10::make_intrusive<DoneWork>();
}

WorkPtr halve(c10d::Backend& right, Tensors& tensors, const c10d::AllreduceOptions& options) {
  right.allreduce(tensors, options)->wait();
  tensors[0].mul_(0.5);
  return c10::make_intrusive<DoneWork>();
}

WorkPtr take_the_wrong_slice(c10d::Backend& right,
                             Tensors& tensors,
                             const c10d::AllreduceOptions& options) {
  right.allreduce(tensors, options)->wait();
  tensors[0].copy_(tensors[0].roll(1, 0));
  return c10::make_intrusive<DoneWork>();
}

WorkPtr drop(c10d::Backend&, Tensors&, const c10d::AllreduceOptions&) {
  return c10::make_intrusive<DoneWork>();
}

WorkPtr die(c10d::Backend&, Tensors&, const c10d::AllreduceOptions&) {
  std::raise(SIGKILL);
  return nullptr;
}

WorkPtr hang(c10d::Backend&, Tensors&, const c10d::AllreduceOptions&) {
  std::ofstream(std::string(std::getenv("TEST_MARKER")) + std::to_string(getpid()));
  for (;;) pause();
}

void break_tensor_group(sim::BackendMap& groups, const FaultyBackend::Fault& fault) {
  auto& group = groups.at(GroupKind::kTensor);
  group = c10::make_intrusive<FaultyBackend>(group, fault);
}

sim::WorldHooks hooks_of(const std::string& fault) {
  sim::WorldHooks hooks;
  if (fault == "other-version") hooks.version = "0.0.1";
  hooks.change_groups = [fault](int64_t rank, sim::BackendMap& groups) {
    if (fault == "flip-sign") break_tensor_group(groups, flip_sign);
    if (fault == "halve") break_tensor_group(groups, halve);
    if (fault == "wrong-slice") break_tensor_group(groups, take_the_wrong_slice);
    if (fault == "drop-collective") break_tensor_group(groups, drop);
    if (fault == "drop-on-rank-1" && rank == 1) break_tensor_group(groups, drop);
    if (fault == "rank-1-dies" && rank == 1) break_tensor_group(groups, die);
    if (fault == "hang") break_tensor_group(groups, hang);
    if (fault == "swap-groups") {
      std::swap(groups.at(GroupKind::kTensor), groups.at(GroupKind::kDataContext));
    }
  };
  return hooks;
}

}  // namespace

int main(int argc, char** argv) {
  const char* fault = std::getenv("TEST_FAULT");
  sim::rank_process_main(argc, argv, hooks_of(fault == nullptr ? "" : fault));
}
