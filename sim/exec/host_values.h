// Values that the host can follow: an operator whose device inputs are all small and known is done
// again on the CPU, and what it writes is known too.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <memory>
#include <optional>
#include <vector>

#include "sim/exec/virtual_gpu_control.h"

namespace sim {

/// `device` holds these numbers of the user's from now on, in its own type. As many as it has
/// elements.
void make_known(const at::Tensor& device, const std::vector<double>& values, const VirtualGpu& gpu);

/// What is done on the host with an operator of one schema.
struct HostTreatment {
  std::optional<c10::OperatorHandle> op;  ///< none: its results stay unknown
  std::vector<bool> written;              ///< by argument
  bool written_is_read = true;
};
/// None for an operator that has no kernels on both devices, or whose result is no matter of its
/// inputs (random numbers, empty memory).
HostTreatment host_treatment_of(const at::RecordFunction& function);

/// One call of an operator, with copies of its inputs on the CPU, from before it ran.
class HostCall {
 public:
  /// Null when an input is large or not known, or `treatment` is none.
  static std::unique_ptr<HostCall> prepare(const at::RecordFunction& function,
                                           const HostTreatment& treatment,
                                           const VirtualGpu& gpu);

  /// Runs it on the CPU and makes known what the device's written inputs and `outputs` hold. Does
  /// nothing when the CPU refuses.
  void finish(const std::vector<c10::IValue>& outputs, const VirtualGpu& gpu);

 private:
  explicit HostCall(c10::OperatorHandle op) : op_(std::move(op)) {}

  bool add_input(const c10::IValue& input, bool is_written, bool is_read, const VirtualGpu& gpu);
  bool add_tensor(const at::Tensor& tensor,
                  bool is_written,
                  bool is_read,
                  const VirtualGpu& gpu,
                  at::Tensor& host);

  c10::OperatorHandle op_;
  torch::jit::Stack host_inputs_;         // and, once it ran, its outputs
  std::vector<at::Tensor> written_;       // on the device
  std::vector<at::Tensor> host_written_;  // the same inputs on the CPU
};

}  // namespace sim
