#include "models/attention/window_mask.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>

namespace models {

WindowMask::WindowMask(const ShardContext& context)
    : device_(context.device),
      sequence_(context.plan.sequence_length()),
      window_(context.plan.model.sliding_window),
      is_read_again_(context.plan.training.recompute != estimator::Recompute::kNone) {}

/// sliding_window_overlay, causal_mask_function and padding_mask_function, one after the other.
void WindowMask::begin_forward(const at::Tensor& ones) {
  value_.reset();
  const at::Tensor places = at::arange(sequence_, at::TensorOptions(device_).dtype(at::kLong));
  const at::Tensor queries = places.unsqueeze(1);
  at::Tensor mask = (places > queries - window_).logical_and(places <= queries).unsqueeze(0);
  if (ones.defined()) mask = mask.logical_and(ones.to(at::kBool).unsqueeze(1));
  value_ = mask.unsqueeze(1);
}

void WindowMask::end_forward() {
  if (!is_read_again_) value_.reset();
}

}  // namespace models
