#include "models/shard/framework_buffers.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones_like.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/util/accumulate.h>

#include <string>

#include "estimator/base/units.h"
#include "estimator/hardware/hardware.h"

namespace models {

using estimator::kKiB;
using estimator::kMiB;
using estimator::MemoryCategory;

namespace {

at::Tensor make_bytes(int64_t bytes, const at::Device& device) {
  return at::empty({bytes}, at::TensorOptions(device).dtype(at::kByte));
}

/// How much more can be allocated without a new peak.
int64_t bytes_below_peak(const at::Device& device) {
  constexpr auto kAllPools = static_cast<size_t>(c10::CachingDeviceAllocator::StatType::AGGREGATE);
  const auto allocated =
      c10::getDeviceAllocator(device.type())->getDeviceStats(device.index()).allocated_bytes;
  return allocated[kAllPools].peak - allocated[kAllPools].current;
}

/// Those of which copies fit below the peak, in turn.
std::vector<at::Tensor> copied_below_peak(at::TensorList changed) {
  std::vector<at::Tensor> copied;
  if (changed.empty()) return copied;
  int64_t left_bytes = bytes_below_peak(changed[0].device());
  for (const at::Tensor& argument : changed) {
    const auto bytes = static_cast<int64_t>(argument.nbytes());
    if (bytes > left_bytes) continue;
    left_bytes -= bytes;
    copied.push_back(argument);
  }
  return copied;
}

void copy_for_a_run(const std::vector<at::Tensor>& arguments) {
  std::vector<at::Tensor> copies;
  copies.reserve(arguments.size());
  for (const at::Tensor& argument : arguments) copies.push_back(at::empty_like(argument));
}

}  // namespace

int64_t inductor_cleared_bytes(const estimator::Plan& plan) {
  const estimator::Gpu* gpu = estimator::find_gpu(plan.cluster.gpu);
  return gpu != nullptr ? gpu->l2_bytes : 0;
}

int64_t transformer_engine_workspace_bytes(const estimator::Plan& plan) {
  const estimator::Gpu* gpu = estimator::find_gpu(plan.cluster.gpu);
  const bool hopper_or_newer = gpu != nullptr && gpu->capability() >= estimator::kHopper;
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

void FrameworkBuffers::use_hadamard_matrix(const at::Device& device) {
  if (hadamard_matrix_.defined() || !device.is_cuda()) return;
  constexpr int64_t kRows = 16;
  const at::Tensor signs = at::eye(kRows, at::TensorOptions(device).dtype(at::kFloat));
  hadamard_matrix_ = at::mm(signs, at::ones_like(signs)).to(at::kBFloat16);
  observer_.memory_lasts(hadamard_matrix_, {MemoryCategory::kWorkspace, "hadamard_matrix", ""});
}

void FrameworkBuffers::tune_at_first_call(const std::string& call,
                                          const at::Device& device,
                                          const at::Tensor& restored) {
  if (!tuned_kernels_.of_triton || !device.is_cuda() || !tuned_.insert(call).second) return;
  const at::Tensor cleared = make_bytes(256 * kMiB, device);
  if (restored.defined()) restored.detach().clone();
}

void FrameworkBuffers::tune_compiled_at_first_call(const CompiledKernel& kernel,
                                                   const at::Device& device) {
  const bool is_tuned =
      tuned_kernels_.cleared_bytes > 0 && device.is_cuda() && kernel.configurations > 1;
  if (!is_tuned || !tuned_.insert(kernel.name).second) return;
  for (int configuration = 0; configuration < kernel.configurations; ++configuration) {
    const std::vector<at::Tensor> copied = copied_below_peak(kernel.changed);
    copy_for_a_run(copied);
    const at::Tensor cleared = make_bytes(tuned_kernels_.cleared_bytes, device);
    copy_for_a_run(copied);
  }
}

at::Tensor FrameworkBuffers::make_workspace(const estimator::Plan& plan, const at::Device& device) {
  at::Tensor workspace = make_bytes(transformer_engine_workspace_bytes(plan), device);
  observer_.memory_lasts(workspace, {MemoryCategory::kWorkspace, "transformer_engine", ""});
  return workspace;
}

}  // namespace models
