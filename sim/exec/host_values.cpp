#include "sim/exec/host_values.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "sim/exec/written_memory.h"
#include "sim/tracking/operator_traits.h"

namespace sim {
namespace {

constexpr uint64_t kLargestBytes = 64 * 1024;

/// What is done with an operator of one schema.
struct Treatment {
  std::optional<c10::OperatorHandle> op;  // none: its results stay unknown
  std::vector<bool> written;              // by argument
  bool written_is_read = true;
};

bool can_be_followed(const c10::OperatorHandle& op) {
  const std::string& name = op.schema().name();
  if (!name.starts_with("aten::") || name.find("empty") != std::string::npos) return false;
  if (op.hasTag(at::Tag::nondeterministic_seeded)) return false;
  if (traits_of(op.operator_name(), c10::DeviceType::CUDA).moves_no_data) return false;
  return op.hasKernelForDispatchKey(c10::DispatchKey::CUDA) &&
         op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU);
}

Treatment treatment_of(const at::RecordFunction& function) {
  Treatment treatment;
  const auto name = function.operator_name();
  if (!name) return treatment;
  const auto op = c10::Dispatcher::singleton().findSchema(*name);
  if (!op || !can_be_followed(*op)) return treatment;
  treatment.op = *op;
  treatment.written_is_read = !is_copy_or_fill(op->schema().name());
  for (const c10::Argument& argument : op->schema().arguments()) {
    const auto* alias = argument.alias_info();
    treatment.written.push_back(alias != nullptr && alias->isWrite());
    if (treatment.written.back() && argument.is_out()) treatment.written_is_read = false;
  }
  return treatment;
}

const Treatment& known_treatment(const at::RecordFunction& function) {
  thread_local std::unordered_map<const char*, Treatment> known;
  const auto [found, is_new] = known.try_emplace(function.overload_name());
  if (is_new) found->second = treatment_of(function);
  return found->second;
}

/// What most operators of a program have: they are let go before anything is made for them.
bool has_large_input(const at::RecordFunction& function) {
  const auto inputs = function.inputs();
  return std::any_of(inputs.begin(), inputs.end(), [](const c10::IValue& input) {
    return input.isTensor() && input.toTensor().defined() &&
           input.toTensor().nbytes() > kLargestBytes;
  });
}

/// A tensor on the CPU with the sizes and strides of another.
at::Tensor like_on_host(const at::Tensor& tensor) {
  return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kCPU));
}

void make_known(const at::Tensor& device, const at::Tensor& host, const VirtualGpu& gpu) {
  if (!device.defined() || !host.defined() || !device.is_cuda() || device.numel() == 0) return;
  if (device.sizes() != host.sizes() || device.scalar_type() != host.scalar_type()) return;
  const MemoryRange range = memory_of(device);
  const bool is_small = range.address != nullptr && range.bytes <= kLargestBytes;
  if (!is_small || !device.is_non_overlapping_and_dense()) return;
  at::Tensor same_layout = like_on_host(device);
  same_layout.copy_(host);
  gpu.poke(range.address, range.bytes, same_layout.const_data_ptr());
}

void make_known(const c10::IValue& device, const c10::IValue& host, const VirtualGpu& gpu) {
  if (device.isTensor() && host.isTensor()) {
    make_known(device.toTensor(), host.toTensor(), gpu);
  } else if (device.isTensorList() && host.isTensorList()) {
    const auto devices = device.toTensorVector();
    const auto hosts = host.toTensorVector();
    for (size_t i = 0; i < std::min(devices.size(), hosts.size()); ++i) {
      make_known(devices[i], hosts[i], gpu);
    }
  }
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

}  // namespace

void make_known(const at::Tensor& device,
                const std::vector<double>& values,
                const VirtualGpu& gpu) {
  const BesideTheProgram beside;
  const at::Tensor numbers =
      at::empty_strided({static_cast<int64_t>(values.size())}, {1}, at::kDouble);
  std::copy(values.begin(), values.end(), numbers.mutable_data_ptr<double>());
  make_known(device, numbers.view(device.sizes()).to(device.scalar_type()), gpu);
}

std::unique_ptr<HostCall> HostCall::prepare(const at::RecordFunction& function,
                                            const VirtualGpu& gpu) try {
  const Treatment& treatment = known_treatment(function);
  if (!treatment.op || has_large_input(function)) return nullptr;
  const BesideTheProgram beside;
  std::unique_ptr<HostCall> call(new HostCall(*treatment.op));
  const auto inputs = function.inputs();
  if (inputs.size() != treatment.written.size()) return nullptr;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_written = treatment.written[i];
    if (!call->add_input(inputs[i], is_written, !is_written || treatment.written_is_read, gpu)) {
      return nullptr;
    }
  }
  return call->has_device_input_ ? std::move(call) : nullptr;
} catch (const std::exception&) {
  return nullptr;  // what cannot be followed is not known
}

void HostCall::finish(const std::vector<c10::IValue>& outputs, const VirtualGpu& gpu) try {
  const BesideTheProgram beside;
  op_.callBoxed(host_inputs_);
  for (size_t i = 0; i < written_.size(); ++i) make_known(written_[i], host_written_[i], gpu);
  for (size_t i = 0; i < std::min(outputs.size(), host_inputs_.size()); ++i) {
    make_known(outputs[i], host_inputs_[i], gpu);
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
    return !is_written && tensor.is_cpu() && tensor.nbytes() <= kLargestBytes;
  }
  has_device_input_ = true;
  const MemoryRange range = memory_of(tensor);
  const bool is_empty = tensor.numel() == 0;  // also an output that the operator will size
  if ((range.address == nullptr && !is_empty) || range.bytes > kLargestBytes) return false;
  host = like_on_host(tensor);
  if (is_read && !is_empty && gpu.peek(range.address, range.bytes, host.mutable_data_ptr()) == 0)
    return false;
  if (is_written) {
    written_.push_back(tensor);
    host_written_.push_back(host);
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
    host_inputs_.emplace_back(std::move(host));
  } else if (input.isTensorList()) {
    c10::List<at::Tensor> hosts;
    for (const at::Tensor& tensor : input.toTensorVector()) {
      at::Tensor host;
      if (!add_tensor(tensor, is_written, is_read, gpu, host)) return false;
      hosts.push_back(std::move(host));
    }
    host_inputs_.emplace_back(std::move(hosts));
  } else if (input.isDevice()) {
    host_inputs_.emplace_back(c10::Device(at::kCPU));
  } else if (input.isList()) {
    const auto elements = input.toListRef();  // of optional tensors: indices
    for (const c10::IValue& element : elements) {
      if (element.isTensor()) return false;
    }
    host_inputs_.push_back(input);
  } else {
    host_inputs_.push_back(input);
  }
  return true;
}

}  // namespace sim
