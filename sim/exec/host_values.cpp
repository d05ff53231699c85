#include "sim/exec/host_values.h"

#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <utility>

#include "sim/exec/written_memory.h"
#include "sim/tracking/operator_traits.h"
#include "sim/tracking/tensors_in.h"

namespace sim {
namespace {

constexpr uint64_t kLargestBytes = 64 * 1024;

bool can_be_followed(const c10::OperatorHandle& op) {
  const std::string& name = op.schema().name();
  if (!name.starts_with("aten::") || name.find("empty") != std::string::npos) return false;
  if (op.hasTag(at::Tag::nondeterministic_seeded)) return false;
  if (traits_of(op.operator_name(), c10::DeviceType::CUDA).moves_no_data) return false;
  return op.hasKernelForDispatchKey(c10::DispatchKey::CUDA) &&
         op.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU);
}

/// Whether the operator has anything on the device, and what it reads there is small and known.
/// Few calls of a program pass this: nothing is made before it.
bool has_known_inputs(c10::ArrayRef<c10::IValue> inputs,
                      const HostTreatment& treatment,
                      const VirtualGpu& gpu) {
  bool is_on_device = false;
  bool is_known = true;
  for (size_t i = 0; i < inputs.size() && is_known; ++i) {
    const bool is_read = !treatment.written[i] || treatment.written_is_read;
    for_each_tensor(inputs[i], [&](const at::Tensor& tensor) {
      if (!is_known || !tensor.is_cuda()) return;
      is_on_device = true;
      if (tensor.numel() == 0) return;  // also an output that the operator will size
      const MemoryRange range = memory_of(tensor);
      is_known = range.address != nullptr && range.bytes <= kLargestBytes &&
                 (!is_read || gpu.peek(range.address, range.bytes, nullptr) != 0);
    });
  }
  return is_on_device && is_known;
}

/// Whether a result is small enough to be kept.
bool has_small(const std::vector<c10::IValue>& outputs) {
  bool found = false;
  for (const c10::IValue& output : outputs) {
    for_each_tensor(output, [&](const at::Tensor& tensor) {
      found = found || (tensor.is_cuda() && tensor.nbytes() <= kLargestBytes);
    });
  }
  return found;
}

/// A tensor on the CPU with the sizes and strides of another.
at::Tensor like_on_host(const at::Tensor& tensor) {
  return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kCPU));
}

/// `write` is the GPU's poke or send.
void make_known(const at::Tensor& device,
                const at::Tensor& host,
                decltype(&onerank_virtual_gpu_poke) write) {
  if (!device.defined() || !host.defined() || !device.is_cuda() || device.numel() == 0) return;
  if (device.sizes() != host.sizes() || device.scalar_type() != host.scalar_type()) return;
  const MemoryRange range = memory_of(device);
  const bool is_small = range.address != nullptr && range.bytes <= kLargestBytes;
  if (!is_small || !device.is_non_overlapping_and_dense()) return;
  at::Tensor same_layout = host;
  if (host.strides() != device.strides() || !host.is_cpu()) {
    same_layout = like_on_host(device);
    same_layout.copy_(host);
  }
  write(range.address, range.bytes, same_layout.const_data_ptr());
}

void make_known(const c10::IValue& device, const c10::IValue& host, const VirtualGpu& gpu) {
  if (device.isTensor() && host.isTensor()) {
    make_known(device.toTensor(), host.toTensor(), gpu.poke);
  } else if (device.isTensorList() && host.isTensorList()) {
    const auto devices = device.toTensorVector();
    const auto hosts = host.toTensorVector();
    for (size_t i = 0; i < std::min(devices.size(), hosts.size()); ++i) {
      make_known(devices[i], hosts[i], gpu.poke);
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

HostTreatment host_treatment_of(const at::RecordFunction& function) {
  HostTreatment treatment;
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

void make_known(const at::Tensor& device,
                const std::vector<double>& values,
                const VirtualGpu& gpu) {
  const BesideTheProgram beside;
  const at::Tensor numbers =
      at::empty_strided({static_cast<int64_t>(values.size())}, {1}, at::kDouble);
  std::copy(values.begin(), values.end(), numbers.mutable_data_ptr<double>());
  make_known(device, numbers.view(device.sizes()).to(device.scalar_type()), gpu.send);
}

std::unique_ptr<HostCall> HostCall::prepare(const at::RecordFunction& function,
                                            const HostTreatment& treatment,
                                            const VirtualGpu& gpu) try {
  const auto inputs = function.inputs();
  if (!treatment.op || inputs.size() != treatment.written.size()) return nullptr;
  if (!has_known_inputs(inputs, treatment, gpu)) return nullptr;
  const BesideTheProgram beside;
  std::unique_ptr<HostCall> call(new HostCall(*treatment.op));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_written = treatment.written[i];
    if (!call->add_input(inputs[i], is_written, !is_written || treatment.written_is_read, gpu)) {
      return nullptr;
    }
  }
  return call;
} catch (const std::exception&) {
  return nullptr;  // what cannot be followed is not known
}

void HostCall::finish(const std::vector<c10::IValue>& outputs, const VirtualGpu& gpu) try {
  if (written_.empty() && !has_small(outputs)) return;
  const BesideTheProgram beside;
  op_.callBoxed(host_inputs_);
  for (size_t i = 0; i < written_.size(); ++i) make_known(written_[i], host_written_[i], gpu.poke);
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
  host = like_on_host(tensor);
  if (is_read && tensor.numel() > 0) {
    const MemoryRange range = memory_of(tensor);
    if (gpu.peek(range.address, range.bytes, host.mutable_data_ptr()) == 0) return false;
  }
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
