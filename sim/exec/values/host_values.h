// Follows values on the host: if all device inputs of an operator are small and known, the operator
// is run again on the CPU, so that its results are known too.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/exec/program/virtual_gpu_control.h"
#include "sim/exec/values/known_tensors.h"

namespace sim {

/// Who made values known: the host's own outlive a kernel that may have written anywhere.
enum class ValueOrigin { kHost, kKernel };
/// From now on the tensor `device` is known to hold these numbers, in its own type. There must be
/// as many as it has elements.
void make_known(const at::Tensor& device,
                const std::vector<double>& values,
                ValueOrigin origin,
                const VirtualGpu& gpu);

/// How the host follows the operators of one schema.
struct HostTreatment {
  std::optional<c10::OperatorHandle> op;  ///< empty: its results stay unknown
  std::vector<bool> written;              ///< by argument
  bool written_is_read = true;
  /// It writes elements that its other inputs choose, such as all: then what was there before does
  /// not matter.
  bool may_overwrite = false;
  /// One operand may decide the result, whatever the other is: x | true.
  bool may_decide = false;
  /// Its result has a row for each element that is not zero.
  bool counts_elements = false;
  bool is_of_extension = false;  ///< see count_reads.h
  /// It is composed of other operators, which may have made its results known.
  bool is_composed = false;
};
/// The treatment is empty for an operator that does not have kernels on both devices, or whose
/// result does not depend on its inputs (random numbers, empty memory).
HostTreatment host_treatment_of(const at::RecordFunction& function);

/// One call of an operator, with copies of its inputs on the CPU, from before it ran.
class HostCall {
 public:
  /// Null when an input is large or not known, or when `treatment` is empty.
  static std::unique_ptr<HostCall> prepare(const at::RecordFunction& function,
                                           const HostTreatment& treatment,
                                           const VirtualGpu& gpu);

  /// For an operator that reads back (count_reads.h): the number that it will read, which is the
  /// number of rows of its result (an extension's: of its last), or the result itself; null if
  /// there is none. Runs the operator on the CPU. The pointer is valid as long as this object.
  const int64_t* answer();
  /// Whether the results on the device have the sizes that those on the CPU have; true if nothing
  /// was answered. Call it before finish().
  bool has_sizes_of(const std::vector<c10::IValue>& outputs) const;

  /// Runs the operator on the CPU and makes the values of the written inputs and of `outputs`
  /// known. Does nothing if the operator fails on the CPU.
  void finish(const std::vector<c10::IValue>& outputs, const VirtualGpu& gpu);

 private:
  static std::unique_ptr<HostCall> prepare_half_known(const at::RecordFunction& function,
                                                      const HostTreatment& treatment,
                                                      const VirtualGpu& gpu);
  static std::unique_ptr<HostCall> prepare_repeated(const at::RecordFunction& function,
                                                    const HostTreatment& treatment,
                                                    const VirtualGpu& gpu);
  explicit HostCall(const HostTreatment& treatment)
      : op_(*treatment.op),
        is_of_extension_(treatment.is_of_extension),
        is_composed_(treatment.is_composed) {}

  bool add_input(const c10::IValue& input, bool is_written, bool is_read, const VirtualGpu& gpu);
  bool add_tensor(const at::Tensor& tensor,
                  bool is_written,
                  bool is_read,
                  const VirtualGpu& gpu,
                  at::Tensor& host);
  bool is_known_already(const std::vector<c10::IValue>& outputs, const VirtualGpu& gpu) const;
  /// Throws if the CPU cannot.
  void run();
  void call_without_chance();
  /// Runs it twice, on different memory. Whether the result is the same.
  bool overwrites();
  /// Runs it for an unknown operand without and with every bit. Whether the result is the same.
  bool is_decided();

  c10::OperatorHandle op_;
  bool is_of_extension_;
  bool is_composed_;
  bool has_begun_ = false;
  bool has_run_ = false;
  bool must_overwrite_ = false;    // what it writes is not known before
  bool is_of_the_host_ = false;    // some input came from the host
  std::optional<size_t> unknown_;  // the operand that is not known
  int64_t repeats_ = 1;            // of each element of the operand in the program's
  std::optional<int64_t> answer_;
  torch::jit::Stack stack_;             // its inputs on the CPU and, once it ran, its outputs
  std::vector<at::Tensor> written_;     // on the device
  std::vector<HostCopy> host_written_;  // the same inputs on the CPU
};

}  // namespace sim
