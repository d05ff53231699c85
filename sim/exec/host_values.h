// Values that the host can follow: an operator whose device inputs are all small and known is done
// again on the CPU, and what it writes is known too.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/exec/known_tensors.h"
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
  /// It is made of others, which may have made its results known.
  bool is_composed = false;
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

  /// The number that an operator which reads back (count_reads.h) will read: the rows of its
  /// result, or the result; null where there is none. Runs the operator on the CPU. Valid as long
  /// as the call.
  const int64_t* answer();

  /// Runs it on the CPU and makes known what the device's written inputs and `outputs` hold. Does
  /// nothing when the CPU refuses.
  void finish(const std::vector<c10::IValue>& outputs, const VirtualGpu& gpu);

 private:
  explicit HostCall(const HostTreatment& treatment)
      : op_(*treatment.op), is_composed_(treatment.is_composed) {}

  bool add_input(const c10::IValue& input, bool is_written, bool is_read, const VirtualGpu& gpu);
  bool add_tensor(const at::Tensor& tensor,
                  bool is_written,
                  bool is_read,
                  const VirtualGpu& gpu,
                  at::Tensor& host);
  bool is_known_already(const std::vector<c10::IValue>& outputs, const VirtualGpu& gpu) const;
  void run();

  c10::OperatorHandle op_;
  bool is_composed_;
  bool has_run_ = false;
  bool is_of_the_host_ = false;  // something that it reads is
  std::optional<int64_t> answer_;
  torch::jit::Stack stack_;             // its inputs on the CPU and, once it ran, its outputs
  std::vector<at::Tensor> written_;     // on the device
  std::vector<HostCopy> host_written_;  // the same inputs on the CPU
};

}  // namespace sim
