#include "models/shard/autocast.h"

#include <ATen/autocast_mode.h>

namespace models {

std::optional<Autocast> current_autocast(at::DeviceType device) {
  if (!at::autocast::is_autocast_enabled(device)) return std::nullopt;
  return Autocast{.device = device, .type = at::autocast::get_autocast_dtype(device)};
}

/// torch.autocast.__enter__ in torch/amp/autocast_mode.py.
AutocastScope::AutocastScope(const std::optional<Autocast>& autocast) : autocast_(autocast) {
  if (!autocast_) return;
  before_ = current_autocast(autocast_->device);
  at::autocast::set_autocast_dtype(autocast_->device, autocast_->type);
  at::autocast::set_autocast_enabled(autocast_->device, true);
  at::autocast::increment_nesting();
}

AutocastScope::~AutocastScope() {
  if (!autocast_) return;
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(autocast_->device, before_.has_value());
  if (before_) at::autocast::set_autocast_dtype(before_->device, before_->type);
}

at::Tensor autocasted(const at::Tensor& tensor) {
  const std::optional<Autocast> autocast = current_autocast(tensor.device().type());
  return autocast ? at::autocast::cached_cast(autocast->type, tensor, autocast->device) : tensor;
}

}  // namespace models
