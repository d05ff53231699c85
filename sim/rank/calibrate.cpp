#include "sim/rank/calibrate.h"

#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/add.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <ctime>
#include <fstream>

#include "sim/rank/kernel_clock.h"
#include "sim/rank/rank_device.h"
#include "sim/tracking/device_record.h"
#include "sim/tracking/torch_version.h"

namespace sim {
namespace {

using estimator::AttentionPass;
using estimator::Calibration;
using estimator::DeviceKind;
using estimator::Dtype;
using estimator::MeasuredAttention;
using estimator::MeasuredMatmul;
using estimator::MeasuredStream;

/// What is measured. Squares show how rates grow with size; the others are layers' shapes.
struct Grid {
  std::vector<MeasuredMatmul> matmul;
  std::vector<MeasuredAttention> attention;
  std::vector<int64_t> stream_bytes;
  std::vector<int64_t> optimizer_elements;
};

Grid gpu_grid() {
  Grid grid;
  for (const int64_t size : {512, 1024, 2048, 4096, 8192, 16384}) {
    grid.matmul.push_back({.m = size, .n = size, .k = size});
  }
  for (const int64_t tokens : {2048, 8192}) {
    grid.matmul.push_back({.m = tokens, .n = 1024, .k = 8192});
    grid.matmul.push_back({.m = tokens, .n = 8192, .k = 1024});
    grid.matmul.push_back({.m = tokens, .n = 28672, .k = 8192});
    grid.matmul.push_back({.m = tokens, .n = 128256, .k = 4096});
    grid.matmul.push_back({.m = 8192, .n = 8192, .k = tokens, .accumulates = true});
    grid.matmul.push_back({.m = 28672, .n = 8192, .k = tokens, .accumulates = true});
  }
  grid.matmul.push_back({.dtype = Dtype::kFp32, .m = 4096, .n = 4096, .k = 4096});
  for (const int64_t width : {64, 128}) {
    for (const int64_t heads : {8, 32}) {
      for (const int64_t sequence : {1024, 4096, 16384}) {
        for (const AttentionPass pass : {AttentionPass::kForward, AttentionPass::kBackward}) {
          grid.attention.push_back(
              {.pass = pass, .heads = heads, .sequence = sequence, .head_width = width});
        }
      }
    }
  }
  grid.stream_bytes = {100'000, 1'000'000, 10'000'000, 100'000'000, 1'000'000'000};
  grid.optimizer_elements = {1'000'000, 10'000'000, 100'000'000};
  return grid;
}

Grid cpu_grid() {
  return {.matmul = {{.dtype = Dtype::kFp32, .m = 128, .n = 128, .k = 128},
                     {.dtype = Dtype::kBf16, .m = 128, .n = 256, .k = 64}},
          .attention = {{.pass = AttentionPass::kForward, .heads = 2, .sequence = 64},
                        {.pass = AttentionPass::kBackward, .heads = 2, .sequence = 64}},
          .stream_bytes = {100'000, 1'000'000},
          .optimizer_elements = {10'000}};
}

at::ScalarType scalar_type(Dtype dtype) {
  if (dtype == Dtype::kFp32) return at::kFloat;
  return dtype == Dtype::kBf16 ? at::kBFloat16 : at::kHalf;
}

/// Random values: a GPU that multiplies zeros needs less power, and is faster than in training.
at::Tensor random(c10::IntArrayRef shape, Dtype dtype, c10::Device device) {
  return at::randn(shape, at::TensorOptions().dtype(scalar_type(dtype)).device(device));
}

double matmul_seconds(const MeasuredMatmul& row, const KernelClock& clock) {
  const at::Tensor left = random({row.m, row.k}, row.dtype, clock.device());
  const at::Tensor right = random({row.n, row.k}, row.dtype, clock.device()).t();
  if (!row.accumulates) return clock.seconds_of([&] { at::mm(left, right); });
  at::Tensor sum = at::zeros({row.m, row.n}, left.options().dtype(at::kFloat));
  return clock.seconds_of([&] { at::addmm_out(sum, sum, left, right, at::kFloat); });
}

double attention_seconds(const MeasuredAttention& row, const KernelClock& clock) {
  const auto heads = [&] {
    return random(
        {row.batch, row.heads, row.sequence, row.head_width}, Dtype::kBf16, clock.device());
  };
  at::Tensor query = heads(), key = heads(), value = heads();
  const auto forward = [&] {
    return at::scaled_dot_product_attention(query, key, value, {}, 0, /*is_causal=*/true);
  };
  if (row.pass == AttentionPass::kForward) {
    const c10::NoGradGuard no_grad;
    return clock.seconds_of([&] { forward(); });
  }
  for (at::Tensor* input : {&query, &key, &value}) input->set_requires_grad(true);
  const at::Tensor output = forward(), gradient = heads();
  return clock.seconds_of([&] {
    torch::autograd::grad({output}, {query, key, value}, {gradient}, /*retain_graph=*/true);
  });
}

MeasuredStream copy(int64_t bytes, const KernelClock& clock) {
  const at::Tensor from =
      at::ones({bytes / 2}, at::TensorOptions().dtype(at::kByte).device(clock.device()));
  at::Tensor to = at::zeros_like(from);
  return {bytes / 2 * 2, clock.seconds_of([&] { to.copy_(from); })};
}

/// Four tensors read and three written.
MeasuredStream fused_adamw(int64_t elements, const KernelClock& clock) {
  const auto options = at::TensorOptions().dtype(at::kFloat).device(clock.device());
  std::vector<at::Tensor> weights = {at::zeros({elements}, options)},
                          gradients = {at::zeros_like(weights[0])},
                          first = {at::zeros_like(weights[0])},
                          second = {at::zeros_like(weights[0])}, steps = {at::ones({}, options)};
  constexpr int64_t kBytesOfElement = 7 * sizeof(float);
  const double seconds = clock.seconds_of([&] {
    at::_fused_adamw_(weights,
                      gradients,
                      first,
                      second,
                      /*max_exp_avg_sqs=*/{},
                      steps,
                      /*lr=*/1e-3,
                      /*beta1=*/0.9,
                      /*beta2=*/0.95,
                      /*weight_decay=*/0.1,
                      /*eps=*/1e-8,
                      /*amsgrad=*/false,
                      /*maximize=*/false);
  });
  return {elements * kBytesOfElement, seconds};
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm date{};
  gmtime_r(&now, &date);
  return fmt::format("{:04}-{:02}-{:02}", date.tm_year + 1900, date.tm_mon + 1, date.tm_mday);
}

/// Of NVIDIA's kernel module: "... Kernel Module  580.95.05  ...".
std::string driver_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  for (std::string word; file >> word;) {
    if (word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == word.npos) {
      return word;
    }
  }
  return "unknown";
}

}  // namespace

Calibration calibrate(DeviceKind kind) {
  const bool gpu = kind == DeviceKind::kCuda;
  const KernelClock clock(torch_device(kind));
  Grid grid = gpu ? gpu_grid() : cpu_grid();
  Calibration result;
  result.tool = {.version = ONERANK_VERSION, .torch = torch_version()};
  result.device = device_record(kind);
  result.driver = gpu ? driver_version() : "none";
  result.date = today();
  if (!gpu)
    result.note = "measured on a CPU: shows the format of the file only; estimates do not use it";
  {
    const c10::NoGradGuard no_grad;
    for (MeasuredMatmul& row : grid.matmul) {
      row.seconds = matmul_seconds(row, clock);
      result.matmul.push_back(row);
    }
    for (const int64_t bytes : grid.stream_bytes) result.streams.push_back(copy(bytes, clock));
    for (const int64_t elements : grid.optimizer_elements) {
      result.optimizer.push_back(fused_adamw(elements, clock));
    }
    result.launch = {.kernel_seconds = clock.launch_seconds(),
                     .host_seconds = clock.host_seconds()};
  }
  for (MeasuredAttention& row : grid.attention) {
    row.seconds = attention_seconds(row, clock);
    result.attention.push_back(row);
  }
  return result;
}

}  // namespace sim
