#include "sim/exec/values/joined_tensors.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/WrapDimMinimal.h>

namespace sim {

std::unique_ptr<JoinedTensors> JoinedTensors::prepare(const at::RecordFunction& function,
                                                      const VirtualGpu& gpu) try {
  const auto inputs = function.inputs();
  if (inputs.size() != 2 || !inputs[0].isTensorList() || !inputs[1].isInt()) return nullptr;
  const auto tensors = inputs[0].toTensorVector();
  if (tensors.empty() || !tensors.front().is_cuda() || tensors.front().dim() == 0) return nullptr;
  auto joined = std::make_unique<JoinedTensors>();
  joined->dim_ = c10::maybe_wrap_dim(inputs[1].toInt(), tensors.front().dim());
  int64_t start = 0;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.dim() != tensors.front().dim()) return nullptr;  // an empty one of old programs
    if (is_known(tensor, gpu)) {
      if (auto copy = read_known(tensor, gpu)) joined->parts_.push_back({start, *std::move(copy)});
    }
    start += tensor.size(joined->dim_);
  }
  return joined->parts_.empty() ? nullptr : std::move(joined);
} catch (const std::exception&) {
  return nullptr;  // what cannot be followed is not known
}

void JoinedTensors::finish(const std::vector<c10::IValue>& outputs, const VirtualGpu& gpu) const {
  if (outputs.empty() || !outputs[0].isTensor()) return;
  const at::Tensor& result = outputs[0].toTensor();
  const at::DisableRecordFunctionGuard unseen;
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  for (const Part& part : parts_) {
    const at::Tensor place = result.narrow(dim_, part.start, part.copy.tensor.size(dim_));
    if (place.scalar_type() == part.copy.tensor.scalar_type()) make_known(place, part.copy, gpu);
  }
}

}  // namespace sim
