#include "sim/tracking/operator_bytes.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <vector>

#include "sim/tracking/tensors_in.h"

namespace sim {

using c10::IValue;

namespace {

int64_t bytes_in_memory(const at::Tensor& tensor, c10::DeviceType device) {
  if (tensor.device().type() != device) return 0;
  int64_t elements = 1;
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    if (tensor.stride(dim) != 0 || tensor.size(dim) == 0) elements *= tensor.size(dim);
  }
  return elements * static_cast<int64_t>(tensor.itemsize());
}

}  // namespace

bool has_bit(uint64_t bits, size_t index) { return index < 64 && ((bits >> index) & 1) != 0; }

bool is_zero(const IValue& value) {
  if (value.isBool()) return !value.toBool();
  return value.isScalar() && value.toScalar().toDouble() == 0.0;
}

/// An element of this type holds two numbers. Older torches do not have it.
int64_t bytes_of(const IValue& value, c10::DeviceType device) {
  int64_t bytes = 0;
  for_each_tensor(value,
                  [&](const at::Tensor& tensor) { bytes += bytes_in_memory(tensor, device); });
  return bytes;
}

int64_t elements_of(const IValue& value) {
  int64_t elements = 0;
  for_each_tensor(value, [&](const at::Tensor& tensor) { elements += tensor.numel(); });
  return elements;
}

namespace {

bool is_same_tensor(const IValue& left, const IValue& right) {
  return left.isTensor() && right.isTensor() &&
         left.toTensor().unsafeGetTensorImpl() == right.toTensor().unsafeGetTensorImpl();
}

bool stands_before(c10::ArrayRef<IValue> inputs, size_t index) {
  return std::any_of(inputs.begin(), inputs.begin() + index, [&](const IValue& earlier) {
    return is_same_tensor(earlier, inputs[index]);
  });
}

bool first_is_read_whole(const OperatorTraits& op, c10::ArrayRef<IValue> inputs) {
  const bool is_whole = op.bytes == ByteRule::kReadWhole || op.bytes == ByteRule::kTargetsWritten;
  if (!is_whole) return false;
  return op.beta_argument < 0 || !is_zero(inputs[op.beta_argument]);
}

int64_t elements_of_largest(c10::ArrayRef<IValue> inputs) {
  int64_t elements = 0;
  for (const IValue& input : inputs) elements = std::max(elements, elements_of(input));
  return elements;
}

/// index_fill_(self, dim, index, value)
int64_t elements_at_index(c10::ArrayRef<IValue> inputs) {
  const at::Tensor& self = inputs[0].toTensor();
  if (self.dim() == 0) return 1;
  const int64_t size = std::max<int64_t>(1, self.size(inputs[1].toInt()));
  return inputs[2].toTensor().numel() * (self.numel() / size);
}

/// index_put_(self, indices, values, accumulate): the indices, broadcast together, times what self
/// holds at each of them. A mask stands for as many dims as it has. How much of it is true is not
/// known: all of it is taken to be, unless there is a value for each element.
int64_t elements_at_indices(c10::ArrayRef<IValue> inputs) {
  const at::Tensor& self = inputs[0].toTensor();
  int64_t dim = 0, indexed = 1, most = 1;
  std::vector<int64_t> broadcast;
  for (const IValue& item : inputs[1].toListRef()) {
    const bool is_index = item.isTensor() && item.toTensor().defined();
    if (!is_index) {
      ++dim;
      continue;
    }
    const at::Tensor& index = item.toTensor();
    const bool is_mask = index.scalar_type() == at::kBool || index.scalar_type() == at::kByte;
    const int64_t dims = is_mask ? index.dim() : 1;
    for (const int64_t end = dim + dims; dim < end && dim < self.dim(); ++dim) {
      indexed *= std::max<int64_t>(1, self.size(dim));
    }
    if (is_mask) {
      most = std::max(most, index.numel());
      continue;
    }
    broadcast.resize(std::max<size_t>(broadcast.size(), index.dim()), 1);
    for (int64_t i = 1; i <= index.dim(); ++i) {
      int64_t& size = broadcast[broadcast.size() - static_cast<size_t>(i)];
      if (size == 1) size = index.size(-i);
    }
  }
  int64_t indices = most;
  for (const int64_t size : broadcast) indices *= size;
  const int64_t of_each = self.numel() / indexed;
  const int64_t values = elements_of(inputs[2]);
  const bool is_masked = most > 1;
  return is_masked && values > of_each ? values : indices * of_each;
}

/// What an update of rows writes.
int64_t updated_elements(const OperatorTraits& op, c10::ArrayRef<IValue> inputs) {
  switch (op.rows) {
    case RowRule::kLargestInput:
      return elements_of_largest(inputs.slice(1));
    case RowRule::kOneIndex:
      return elements_at_index(inputs);
    case RowRule::kIndices:
      return elements_at_indices(inputs);
  }
  return 0;
}

bool updates_rows(const OperatorTraits& op) {
  return op.bytes == ByteRule::kRowsUpdated || op.bytes == ByteRule::kRowsWritten;
}

/// Read and written of the first input.
int64_t updated_rows_bytes(const OperatorTraits& op, c10::ArrayRef<IValue> inputs) {
  const bool accumulates = op.accumulate_argument >= 0 && !is_zero(inputs[op.accumulate_argument]);
  const int64_t times = op.bytes == ByteRule::kRowsUpdated || accumulates ? 2 : 1;
  return times * updated_elements(op, inputs) *
         static_cast<int64_t>(inputs[0].toTensor().itemsize());
}

/// nll_loss_backward(grad_output, self, target, ...): a row of `self` has one target.
int64_t targets_of(c10::ArrayRef<IValue> inputs) { return elements_of(inputs[2]); }

int64_t element_bytes(const IValue& tensor) {
  return static_cast<int64_t>(tensor.toTensor().itemsize());
}

/// What is read or written of the first input, or written of the output, where that is not the
/// whole.
int64_t bytes_of_rows(const OperatorTraits& op, c10::ArrayRef<IValue> inputs) {
  if (updates_rows(op)) return updated_rows_bytes(op, inputs);
  if (op.bytes == ByteRule::kTargetsWritten) return targets_of(inputs) * element_bytes(inputs[0]);
  if (op.bytes != ByteRule::kBagsRead) return 0;
  const at::Tensor& table = inputs[0].toTensor();
  return elements_of(inputs[1]) * table.size(-1) * static_cast<int64_t>(table.itemsize());
}

}  // namespace

int64_t elements_written_in_place(const OperatorTraits& op, c10::ArrayRef<IValue> inputs) {
  if (updates_rows(op)) return updated_elements(op, inputs);
  if (op.bytes == ByteRule::kTargetsWritten) return targets_of(inputs);
  return op.unreturned_writes != 0 ? elements_of(inputs[0]) : 0;
}

int64_t input_bytes(const OperatorTraits& op, c10::ArrayRef<IValue> inputs) {
  int64_t bytes = bytes_of_rows(op, inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_read = !has_bit(op.out_arguments | op.unread_arguments, i) &&
                         !stands_before(inputs, i) && (i > 0 || first_is_read_whole(op, inputs));
    const int times = (is_read ? 1 : 0) + (has_bit(op.unreturned_writes, i) ? 1 : 0);
    if (times > 0) bytes += times * bytes_of(inputs[i], op.device);
  }
  return bytes;
}

bool inputs_tell_all(const OperatorTraits& op) {
  return updates_rows(op) || op.bytes == ByteRule::kTargetsWritten;
}

}  // namespace sim
