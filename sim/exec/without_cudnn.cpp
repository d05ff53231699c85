#include "sim/exec/without_cudnn.h"

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <iterator>

namespace sim {
namespace {

constexpr std::string_view kOnCudnn[] = {
    "aten::convolution", "aten::lstm", "aten::gru", "aten::rnn_tanh", "aten::rnn_relu"};

}  // namespace

void switch_cudnn_off() { at::globalContext().setUserEnabledCuDNN(false); }

bool has_cudnn_kernels(std::string_view operator_name) {
  return std::find(std::begin(kOnCudnn), std::end(kOnCudnn), operator_name) != std::end(kOnCudnn);
}

void note_missing_cudnn(const at::RecordFunction& function) {
  static std::atomic_flag told;
  const auto inputs = function.inputs();
  if (inputs.empty() || !inputs[0].isTensor() || !inputs[0].toTensor().is_cuda()) return;
  if (told.test_and_set()) return;
  std::fprintf(stderr,
               "onerank: note: the virtual GPU has no cuDNN: PyTorch's own kernels run instead "
               "(%s), and cuDNN's workspaces are not counted\n",
               function.name());
}

}  // namespace sim
