#include "estimator/memory/framework_communicators.h"

namespace estimator {

const FrameworkCommunicators& communicators_of(Framework framework) {
  static const FrameworkCommunicators none;
  // PyTorch 1.11 came with NCCL 2.10. DeepSpeed v0.5.10: runtime/pipe/engine.py, topology.py.
  static const FrameworkCommunicators megatron_deepspeed{
      .connect_when_made = true,
      .pair_for_each_peer = true,
      .others = {{GroupKind::kWorld, "barriers"},
                 {GroupKind::kTensor, "DeepSpeed's slice group: activations between stages"},
                 {GroupKind::kModel, "overflow and norm of the gradients"},
                 {GroupKind::kPipeline, "the loss, broadcast to all stages"}}};
  return framework == Framework::kMegatronDeepspeed ? megatron_deepspeed : none;
}

}  // namespace estimator
