#include "models/shard/framework_buffers.h"

#include <ATen/ops/empty.h>
#include <c10/util/accumulate.h>

#include <string>

#include "estimator/base/units.h"
#include "estimator/hardware/hardware.h"

namespace models {

using estimator::kKiB;
using estimator::kMiB;
using estimator::MemoryCategory;

int64_t transformer_engine_workspace_bytes(const estimator::Plan& plan) {
  const estimator::Gpu* gpu = estimator::find_gpu(plan.cluster.gpu);
  constexpr int kHopper = 9;
  const bool hopper_or_newer = gpu != nullptr && std::stoi(gpu->compute_capability) >= kHopper;
  return hopper_or_newer ? 32 * kMiB + kKiB : 4 * kMiB;
}

at::Tensor FrameworkBuffers::global_memory(at::IntArrayRef shape,
                                           const at::TensorOptions& options,
                                           const std::string& key) {
  const int64_t elements = c10::multiply_integers(shape);
  at::Tensor& memory = global_memory_[key];
  if (!memory.defined() || memory.numel() < elements) {
    memory = at::empty({elements}, options.requires_grad(false));
    observer_.memory_lasts(memory, {MemoryCategory::kWorkspace, "global_memory_buffer", ""});
  }
  return memory.narrow(0, 0, elements).view(shape);
}

const at::Tensor& FrameworkBuffers::causal_mask(const at::Tensor& mask) {
  if (!causal_mask_.defined()) {
    causal_mask_ = mask.clone();
    observer_.memory_lasts(causal_mask_, {MemoryCategory::kWorkspace, "attention_mask", ""});
  }
  return causal_mask_;
}

void FrameworkBuffers::use_transformer_engine_workspace(const estimator::Plan& plan,
                                                        const at::Device& device) {
  if (transformer_engine_workspace_.defined() || !device.is_cuda()) return;
  transformer_engine_workspace_ = make_workspace(plan, device);
}

void FrameworkBuffers::use_grouped_product_workspaces(const estimator::Plan& plan,
                                                      const at::Device& device) {
  if (!grouped_product_workspaces_.empty() || !device.is_cuda()) return;
  constexpr int kStreams = 4;
  for (int stream = 0; stream < kStreams; ++stream) {
    grouped_product_workspaces_.push_back(make_workspace(plan, device));
  }
}

void FrameworkBuffers::tune_at_first_call(const std::string& call,
                                          const at::Device& device,
                                          const at::Tensor& restored) {
  if (!has_tuned_kernels_ || !device.is_cuda() || !tuned_.insert(call).second) return;
  constexpr int64_t kCleared = 256 * kMiB;
  const at::Tensor cleared = at::empty({kCleared}, at::TensorOptions(device).dtype(at::kByte));
  if (restored.defined()) restored.detach().clone();
}

at::Tensor FrameworkBuffers::make_workspace(const estimator::Plan& plan, const at::Device& device) {
  at::Tensor workspace = at::empty({transformer_engine_workspace_bytes(plan)},
                                   at::TensorOptions(device).dtype(at::kByte));
  observer_.memory_lasts(workspace, {MemoryCategory::kWorkspace, "transformer_engine", ""});
  return workspace;
}

}  // namespace models
