#include "sim/exec/values/host_values.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/as_strided.h>
#include <ATen/ops/bitwise_not.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/ones_like.h>

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "sim/exec/values/written_memory.h"
#include "sim/tracking/operator_traits.h"
#include "sim/tracking/tensors_in.h"

namespace sim {
namespace {

/// With a process group or a stream the operator does more than what its results tell.
bool takes_objects(const c10::FunctionSchema& schema) {
  return std::any_of(
      schema.arguments().begin(), schema.arguments().end(), [](const c10::Argument& argument) {
        return argument.type()->kind() == c10::TypeKind::ClassType;
      });
}

/// An extension's operator (FBGEMM's on lengths and indices) has both kernels itself.
bool is_of_two_devices(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(c10::DispatchKey::CUDA) &&
         op.hasKernelForDispatchKey(c10::DispatchKey::CPU) && !takes_objects(op.schema());
}

/// Operators without kernels of their own are made of others, and so are their results; but some
/// (copy_) have their kernels past the dispatcher.
bool can_be_followed(const c10::OperatorHandle& op) {
  const std::string& name = op.schema().name();
  if (name.find("empty") != std::string::npos) return false;
  if (op.hasTag(at::Tag::nondeterministic_seeded)) return false;
  if (traits_of(op.operator_name(), c10::DeviceType::CUDA).moves_no_data) return false;
  if (is_of_extension(op.operator_name())) return is_of_two_devices(op);
  if (!name.starts_with("aten::")) return false;
  return (op.hasKernelForDispatchKey(c10::DispatchKey::CUDA) ||
          op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd)) &&
         op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU);
}

/// Whether the operator has anything on the device, and what it reads there is small and known.
/// Few calls of a program pass this: nothing is made before it.
bool has_known_inputs(c10::ArrayRef<c10::IValue> inputs,
                      const HostTreatment& treatment,
                      bool written_is_read,
                      const VirtualGpu& gpu) {
  bool is_on_device = false;
  bool is_known = true;
  double part = 0;
  for (size_t i = 0; i < inputs.size() && is_known; ++i) {
    const bool is_read = !treatment.written[i] || written_is_read;
    for_each_tensor(inputs[i], [&](const at::Tensor& tensor) {
      if (!is_known || !tensor.is_cuda()) return;
      is_on_device = true;
      if (tensor.numel() == 0) return;  // also an output that the operator will size
      part += followed_part(tensor, gpu);
      is_known = memory_of(tensor).address != nullptr && part <= 1 &&
                 (!is_read || sim::is_known(tensor, gpu));
    });
  }
  return is_on_device && is_known;
}

template <class Visit>
void for_each_device_tensor(const std::vector<c10::IValue>& values, const Visit& visit) {
  for (const c10::IValue& value : values) {
    for_each_tensor(value, [&](const at::Tensor& tensor) {
      if (tensor.is_cuda()) visit(tensor);
    });
  }
}

/// Whether a result is small enough to be kept.
bool has_small(const std::vector<c10::IValue>& outputs, const VirtualGpu& gpu) {
  bool found = false;
  for_each_device_tensor(
      outputs, [&](const at::Tensor& tensor) { found = found || followed_part(tensor, gpu) <= 1; });
  return found;
}

/// While the CPU works: nothing of it is the program's.
class BesideTheProgram {
 private:
  at::DisableRecordFunctionGuard unseen_;
  at::AutoDispatchBelowADInplaceOrView below_autograd_;
  c10::impl::ExcludeDispatchKeyGuard plain_{
      c10::DispatchKeySet({c10::DispatchKey::Python,
                           c10::DispatchKey::PythonTLSSnapshot,
                           c10::DispatchKey::FuncTorchDynamicLayerFrontMode,
                           c10::DispatchKey::FuncTorchDynamicLayerBackMode}) |
      c10::autocast_dispatch_keyset};
};

/// As the host code of an operator reads it: the rows of a result whose size is read, or the
/// result.
std::optional<int64_t> number_read(const c10::IValue& output) {
  if (output.isBool()) return output.toBool() ? 1 : 0;
  if (output.isTensor() && output.toTensor().dim() > 0) return output.toTensor().size(0);
  return std::nullopt;
}

at::Tensor state_of(at::Generator& generator) {
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

/// Of a result that is not empty: the last one. Extensions make sizes from what they read, and give
/// what has these sizes behind what has not.
const c10::IValue* last_result(const torch::jit::Stack& results) {
  const auto found = std::find_if(results.rbegin(), results.rend(), [](const c10::IValue& result) {
    return result.isTensor() && result.toTensor().defined();
  });
  return found == results.rend() ? nullptr : &*found;
}

/// Operators in place that may write every element, so that a permutation can be inverted into
/// empty memory (torch.nn.utils.rnn.pack_padded_sequence).
bool may_overwrite(const std::string& name) {
  return name == "aten::scatter_" || name == "aten::index_copy_" || name == "aten::index_put_";
}

/// A tensor with each element that an expanded one repeats once, and how often that has it.
struct Repeated {
  at::Tensor once;
  int64_t repeats = 1;
};
Repeated repeated_elements(const at::Tensor& tensor) {
  Repeated found;
  std::vector<int64_t> sizes = tensor.sizes().vec();
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    if (tensor.stride(dim) == 0) found.repeats *= std::exchange(sizes[static_cast<size_t>(dim)], 1);
  }
  found.once = at::as_strided(tensor, sizes, tensor.strides());
  return found;
}

bool may_decide(const c10::OperatorName& name) {
  return (name.name == "aten::bitwise_or" || name.name == "aten::bitwise_and") &&
         name.overload_name == "Tensor";
}

}  // namespace

HostTreatment host_treatment_of(const at::RecordFunction& function) {
  HostTreatment treatment;
  const auto name = function.operator_name();
  if (!name) return treatment;
  const auto op = c10::Dispatcher::singleton().findSchema(*name);
  if (!op || !can_be_followed(*op)) return treatment;
  treatment.op = *op;
  treatment.is_of_extension = is_of_extension(op->operator_name());
  treatment.is_composed = !op->hasKernelForDispatchKey(c10::DispatchKey::CUDA);
  treatment.written_is_read = !is_copy_or_fill(op->schema().name());
  treatment.may_overwrite = may_overwrite(op->schema().name());
  treatment.may_decide = may_decide(op->operator_name());
  treatment.counts_elements = op->schema().name() == "aten::nonzero";
  for (const c10::Argument& argument : op->schema().arguments()) {
    const auto* alias = argument.alias_info();
    treatment.written.push_back(alias != nullptr && alias->isWrite());
    if (treatment.written.back() && argument.is_out()) treatment.written_is_read = false;
  }
  return treatment;
}

void make_known(const at::Tensor& device,
                const std::vector<double>& values,
                ValueOrigin origin,
                const VirtualGpu& gpu) {
  const BesideTheProgram beside;
  const at::Tensor numbers =
      at::empty_strided({static_cast<int64_t>(values.size())}, {1}, at::kDouble);
  std::copy(values.begin(), values.end(), numbers.mutable_data_ptr<double>());
  make_known(device,
             {.tensor = numbers.view(device.sizes()).to(device.scalar_type()),
              .is_of_the_host = origin == ValueOrigin::kHost},
             gpu);
}

std::unique_ptr<HostCall> HostCall::prepare(const at::RecordFunction& function,
                                            const HostTreatment& treatment,
                                            const VirtualGpu& gpu) try {
  const auto inputs = function.inputs();
  if (!treatment.op || inputs.size() != treatment.written.size()) return nullptr;
  bool written_is_read = treatment.written_is_read;
  if (!has_known_inputs(inputs, treatment, written_is_read, gpu)) {
    if (treatment.may_decide) return prepare_half_known(function, treatment, gpu);
    if (treatment.counts_elements) return prepare_repeated(function, treatment, gpu);
    written_is_read = false;
    if (!treatment.may_overwrite || !has_known_inputs(inputs, treatment, false, gpu)) {
      return nullptr;
    }
  }
  const BesideTheProgram beside;
  std::unique_ptr<HostCall> call(new HostCall(treatment));
  call->must_overwrite_ = treatment.may_overwrite && !written_is_read;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_written = treatment.written[i];
    if (!call->add_input(inputs[i], is_written, !is_written || written_is_read, gpu)) {
      return nullptr;
    }
  }
  return call;
} catch (const std::exception&) {
  return nullptr;  // what cannot be followed is not known
}

std::unique_ptr<HostCall> HostCall::prepare_half_known(const at::RecordFunction& function,
                                                       const HostTreatment& treatment,
                                                       const VirtualGpu& gpu) {
  const auto inputs = function.inputs();
  const auto is_kept = [&](const c10::IValue& input) {
    const at::Tensor& tensor = input.toTensor();
    return tensor.is_cuda() && memory_of(tensor).address != nullptr &&
           followed_part(tensor, gpu) <= 1;
  };
  if (!is_kept(inputs[0]) || !is_kept(inputs[1])) return nullptr;
  const size_t known = is_known(inputs[0].toTensor(), gpu) ? 0 : 1;
  if (!is_known(inputs[known].toTensor(), gpu)) return nullptr;
  const BesideTheProgram beside;
  std::unique_ptr<HostCall> call(new HostCall(treatment));
  call->unknown_ = 1 - known;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (i == *call->unknown_) {
      call->stack_.emplace_back(like_on_host(inputs[i].toTensor()).tensor.zero_());
    } else if (!call->add_input(inputs[i], false, true, gpu)) {
      return nullptr;
    }
  }
  return call;
}

/// Of a mask that is expanded over the width of a model: how much of it is true follows from the
/// few elements that it has in memory.
std::unique_ptr<HostCall> HostCall::prepare_repeated(const at::RecordFunction& function,
                                                     const HostTreatment& treatment,
                                                     const VirtualGpu& gpu) {
  const auto inputs = function.inputs();
  if (inputs.size() != 1 || !inputs[0].toTensor().is_cuda()) return nullptr;
  const BesideTheProgram beside;
  const Repeated mask = repeated_elements(inputs[0].toTensor());
  if (mask.repeats < 2 || !is_known(mask.once, gpu)) return nullptr;
  std::unique_ptr<HostCall> call(new HostCall(treatment));
  call->repeats_ = mask.repeats;
  return call->add_input(mask.once, false, true, gpu) ? std::move(call) : nullptr;
}

void HostCall::run() {
  if (has_run_) return;
  if (std::exchange(has_begun_, true)) throw std::runtime_error("it fails on the CPU");
  const BesideTheProgram beside;
  if (is_of_extension_) {
    call_without_chance();
  } else {
    op_.callBoxed(stack_);
  }
  has_run_ = true;
}

/// Tags of extensions do not tell whether they draw numbers.
void HostCall::call_without_chance() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const at::Tensor before = state_of(generator);
  op_.callBoxed(stack_);
  if (state_of(generator).equal(before)) return;
  const std::lock_guard lock(generator.mutex());
  generator.set_state(before);
  throw std::runtime_error("its result is by chance");
}

bool HostCall::overwrites() {
  const BesideTheProgram beside;
  at::Tensor& first = host_written_.front().tensor;
  first.zero_();
  torch::jit::Stack other = stack_;
  const at::Tensor ones = at::ones_like(first);
  other.front() = ones;
  op_.callBoxed(other);
  run();
  return first.equal(ones);
}

bool HostCall::is_decided() {
  const BesideTheProgram beside;
  torch::jit::Stack other = stack_;
  other[*unknown_] = at::bitwise_not(stack_[*unknown_].toTensor());
  op_.callBoxed(other);
  run();
  return other.front().toTensor().equal(stack_.front().toTensor());
}

const int64_t* HostCall::answer() try {
  run();
  const c10::IValue* const result = is_of_extension_ ? last_result(stack_)
                                    : stack_.empty() ? nullptr
                                                     : &stack_.front();
  if (result != nullptr) answer_ = number_read(*result);
  if (answer_) *answer_ *= repeats_;
  return answer_ ? &*answer_ : nullptr;
} catch (const std::exception&) {
  return nullptr;
}

bool HostCall::is_known_already(const std::vector<c10::IValue>& outputs,
                                const VirtualGpu& gpu) const {
  bool is_known = true;
  const auto look = [&](const at::Tensor& tensor) {
    is_known = is_known && (tensor.numel() == 0 || sim::is_known(tensor, gpu));
  };
  for (const at::Tensor& tensor : written_) look(tensor);
  for_each_device_tensor(outputs, look);
  return is_known;
}

bool HostCall::has_sizes_of(const std::vector<c10::IValue>& outputs) const {
  const bool is_another_result = repeats_ > 1;  // see prepare_repeated()
  if (!answer_ || is_another_result || outputs.size() != stack_.size()) return true;
  return std::equal(
      outputs.begin(), outputs.end(), stack_.begin(), [](const auto& device, const auto& host) {
        const bool are_tensors = device.isTensor() && host.isTensor();
        return !are_tensors || device.toTensor().sizes() == host.toTensor().sizes();
      });
}

void HostCall::finish(const std::vector<c10::IValue>& outputs, const VirtualGpu& gpu) try {
  if (repeats_ > 1) return;  // the result is another one
  if (written_.empty() && !has_small(outputs, gpu)) return;
  if (is_composed_ && is_known_already(outputs, gpu)) return;
  if (must_overwrite_ && !overwrites()) return;
  if (unknown_ && !is_decided()) return;
  run();
  const BesideTheProgram beside;
  for (size_t i = 0; i < written_.size(); ++i) {
    host_written_[i].is_of_the_host = is_of_the_host_;
    make_known(written_[i], host_written_[i], gpu);
  }
  const auto keep = [&](const at::Tensor& device, const at::Tensor& host) {
    make_known(device, {.tensor = host, .is_of_the_host = is_of_the_host_}, gpu);
  };
  for (size_t i = 0; i < std::min(outputs.size(), stack_.size()); ++i) {
    if (outputs[i].isTensor() && stack_[i].isTensor()) {
      keep(outputs[i].toTensor(), stack_[i].toTensor());
    } else if (outputs[i].isTensorList() && stack_[i].isTensorList()) {
      const auto devices = outputs[i].toTensorVector();
      const auto hosts = stack_[i].toTensorVector();
      for (size_t k = 0; k < std::min(devices.size(), hosts.size()); ++k)
        keep(devices[k], hosts[k]);
    }
  }
} catch (const std::exception&) {
  // the CPU has no such case: the result is not known, as without it
}

bool HostCall::add_tensor(const at::Tensor& tensor,
                          bool is_written,
                          bool is_read,
                          const VirtualGpu& gpu,
                          at::Tensor& host) {
  host = tensor;
  if (!tensor.defined()) return true;
  if (!tensor.is_cuda()) {
    is_of_the_host_ = is_of_the_host_ || tensor.dim() > 0;
    return !is_written && tensor.is_cpu() && followed_part(tensor, gpu) <= 1;
  }
  // An extension's kernel may have written wherever it was given memory; the CPU's tells.
  const bool is_kept = is_written || is_of_extension_;
  // What lies between the elements that are written stays: it has to be read with them.
  const bool has_gaps = is_kept && !tensor.is_non_overlapping_and_dense();
  auto copy = is_read || has_gaps ? read_known(tensor, gpu) : std::nullopt;
  if (!copy && is_read) return false;
  if (!copy) copy = like_on_host(tensor);
  host = copy->tensor;
  is_of_the_host_ = is_of_the_host_ || (is_read && copy->is_of_the_host);
  if (is_kept) {
    written_.push_back(tensor);
    host_written_.push_back(*std::move(copy));
  }
  return true;
}

bool HostCall::add_input(const c10::IValue& input,
                         bool is_written,
                         bool is_read,
                         const VirtualGpu& gpu) {
  if (input.isTensor()) {
    at::Tensor host;
    if (!add_tensor(input.toTensor(), is_written, is_read, gpu, host)) return false;
    stack_.emplace_back(std::move(host));
  } else if (input.isTensorList()) {
    c10::List<at::Tensor> hosts;
    for (const at::Tensor& tensor : input.toTensorVector()) {
      at::Tensor host;
      if (!add_tensor(tensor, is_written, is_read, gpu, host)) return false;
      hosts.push_back(std::move(host));
    }
    stack_.emplace_back(std::move(hosts));
  } else if (input.isOptionalTensorList()) {  // indices
    c10::List<std::optional<at::Tensor>> hosts;
    for (const std::optional<at::Tensor>& tensor : input.toOptionalTensorVector()) {
      at::Tensor host;
      if (tensor && !add_tensor(*tensor, is_written, is_read, gpu, host)) return false;
      hosts.push_back(tensor ? std::optional(std::move(host)) : std::nullopt);
    }
    stack_.emplace_back(std::move(hosts));
  } else if (input.isDevice()) {
    stack_.emplace_back(c10::Device(at::kCPU));
  } else {
    stack_.push_back(input);
  }
  return true;
}

}  // namespace sim
