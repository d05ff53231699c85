// torch.autocast: while a scope lives, PyTorch's operators cast their inputs as its lists say
// (ATen/autocast_mode.h). The copies of fp32 leaves in 16 bits are kept until the outermost scope
// ends.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace models {

/// The device and the type to which operators cast.
struct Autocast {
  at::DeviceType device;
  c10::ScalarType type;
};

/// What is in force on `device` now; empty if nothing is.
std::optional<Autocast> current_autocast(at::DeviceType device);

/// Does nothing without an autocast.
class AutocastScope {
 public:
  explicit AutocastScope(const std::optional<Autocast>& autocast);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  std::optional<Autocast> autocast_, before_;
};

/// The tensor as an operator reads it that autocast runs in 16 bits.
at::Tensor autocasted(const at::Tensor& tensor);

}  // namespace models
