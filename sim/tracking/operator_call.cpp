#include "sim/tracking/operator_call.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "sim/tracking/operator_bytes.h"
#include "sim/tracking/tensors_in.h"

namespace sim {
namespace {

using c10::IValue;

c10::ScalarType dtype_of(const IValue& value) {
  c10::ScalarType dtype = c10::ScalarType::Undefined;
  for_each_tensor(value, [&](const at::Tensor& tensor) {
    if (dtype == c10::ScalarType::Undefined) dtype = tensor.scalar_type();
  });
  return dtype;
}

/// Whether the inputs on the device are walked through in one order without gaps.
bool are_alike(c10::ArrayRef<IValue> inputs, c10::DeviceType device) {
  const at::Tensor* first = nullptr;
  for (const IValue& input : inputs) {
    if (!input.isTensor()) continue;
    const at::Tensor& tensor = input.toTensor();
    if (!tensor.defined() || tensor.device().type() != device || tensor.dim() == 0) continue;
    if (!tensor.is_non_overlapping_and_dense()) return false;
    if (first == nullptr) {
      first = &tensor;
      continue;
    }
    if (tensor.sizes() != first->sizes()) return false;
    for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
      if (tensor.size(dim) > 1 && tensor.stride(dim) != first->stride(dim)) return false;
    }
  }
  return true;
}

c10::ScalarType other_dtype(c10::ArrayRef<IValue> inputs, const OperatorCall& call) {
  for (const IValue& input : inputs) {
    const c10::ScalarType dtype = input.isTensor() ? dtype_of(input) : call.dtype;
    if (dtype != call.dtype && dtype != c10::ScalarType::Undefined) return dtype;
  }
  return c10::ScalarType::Undefined;
}

void append_shape(const IValue& value, std::vector<int64_t>& flat_shapes) {
  if (value.isTensor()) {
    for_each_tensor(value, [&](const at::Tensor& tensor) {
      flat_shapes.push_back(tensor.dim());
      flat_shapes.insert(flat_shapes.end(), tensor.sizes().begin(), tensor.sizes().end());
    });
  } else if (const int64_t elements = elements_of(value); elements > 0) {
    flat_shapes.push_back(1);
    flat_shapes.push_back(elements);
  }
}

bool is_float4_pair(at::ScalarType type) {
  return std::string_view(c10::toString(type)) == "Float4_e2m1fn_x2";
}

double matrix_product_flops(const at::Tensor& left, const at::Tensor& right) {
  const double elements = is_float4_pair(left.scalar_type()) ? 2 : 1;
  return 2.0 * elements * static_cast<double>(left.numel()) * static_cast<double>(right.size(-1));
}

struct Sequence {
  double queries = 0;
  double keys = 0;
};

bool is_packed(const OperatorTraits& op, c10::ArrayRef<IValue> inputs) {
  if (op.key_ends_argument < 0) return false;
  const IValue& ends = inputs[op.key_ends_argument];
  return ends.isTensor() && ends.toTensor().defined();
}

/// The differences of the ends; none where these are not known.
std::vector<int64_t> lengths_of(c10::ArrayRef<IValue> inputs,
                                int ends_argument,
                                const ReadIntegers& read) {
  if (!read || ends_argument < 0 || !inputs[ends_argument].isTensor()) return {};
  const std::vector<int64_t> ends =
      read(inputs[ends_argument].toTensor()).value_or(std::vector<int64_t>());
  std::vector<int64_t> lengths;
  for (size_t i = 1; i < ends.size(); ++i) lengths.push_back(ends[i] - ends[i - 1]);
  const bool are_lengths =
      std::all_of(lengths.begin(), lengths.end(), [](int64_t length) { return length >= 0; });
  return are_lengths ? lengths : std::vector<int64_t>();
}

/// Only the number of sequences and the longest one are known: half of a query's keys are taken to
/// be those of a mean sequence, half those of the longest.
double keys_of_usual_query(const OperatorTraits& op, c10::ArrayRef<IValue> inputs, double keys) {
  if (op.longest_key_argument < 0 || !inputs[op.longest_key_argument].isInt()) return keys;
  const int64_t ends = inputs[op.key_ends_argument].toTensor().numel();
  const auto sequences = static_cast<double>(std::max<int64_t>(1, ends - 1));
  const auto longest = static_cast<double>(inputs[op.longest_key_argument].toInt());
  return std::min(keys, (keys / sequences + longest) / 2);
}

/// Of sequences that lie one behind the other; none where it is not known where they end.
std::vector<Sequence> known_sequences(const OperatorTraits& op,
                                      c10::ArrayRef<IValue> inputs,
                                      const ReadIntegers& read) {
  const std::vector<int64_t> keys = lengths_of(inputs, op.key_ends_argument, read);
  const std::vector<int64_t> queries = lengths_of(inputs, op.query_ends_argument, read);
  if (keys.size() != queries.size()) return {};
  std::vector<Sequence> sequences;
  for (size_t i = 0; i < keys.size(); ++i) {
    sequences.push_back(
        {.queries = static_cast<double>(queries[i]), .keys = static_cast<double>(keys[i])});
  }
  return sequences;
}

/// Those that attention goes over; of equal ones, or of unknown ones, a single one.
std::vector<Sequence> sequences_of(const OperatorTraits& op,
                                   c10::ArrayRef<IValue> inputs,
                                   const std::vector<Sequence>& known) {
  if (!known.empty()) return known;
  const int64_t dim = op.heads_before_sequence ? -2 : -3;
  const auto keys = static_cast<double>(inputs[op.first_operand + 1].toTensor().size(dim));
  const auto queries = static_cast<double>(inputs[op.first_operand].toTensor().size(dim));
  if (!is_packed(op, inputs)) return {{.queries = queries, .keys = keys}};
  const double usual = keys_of_usual_query(op, inputs, keys);
  return {{.queries = usual, .keys = usual}};
}

/// The sum of min(first + i, most) for i from 0 to count - 1.
double sum_of_smaller(double first, double count, double most) {
  const double below = std::clamp(most - first, 0.0, count);
  return below * first + below * (below - 1) / 2 + (count - below) * most;
}

/// Argument `index`, a number of keys; `all` if it is left out or below 0.
double window_of(c10::ArrayRef<IValue> inputs, int index, double all) {
  const bool is_given = index >= 0 && static_cast<size_t>(index) < inputs.size() &&
                        inputs[index].isInt() && inputs[index].toInt() >= 0;
  return is_given ? static_cast<double>(inputs[index].toInt()) : all;
}

/// The keys that a query meets in the mean. A causal mask leaves half of them, counted as usual. A
/// window leaves those near its own key; the last query's own key is the last one.
double keys_met(const OperatorTraits& op, c10::ArrayRef<IValue> inputs, const Sequence& sequence) {
  const double keys = sequence.keys, queries = sequence.queries;
  const bool is_causal = op.causal_argument >= 0 && !is_zero(inputs[op.causal_argument]);
  const double left = window_of(inputs, op.window_left_argument, keys);
  const double right = is_causal ? 0 : window_of(inputs, op.window_right_argument, keys);
  if (left + right + 1 > keys) return is_causal ? keys / 2 : keys;
  const double own = keys - queries;  // of the first query
  const double behind = sum_of_smaller(own + right + 1, queries, keys);
  const double before =
      sum_of_smaller(own - left, queries, keys) - sum_of_smaller(own - left, queries, 0);
  return std::max(0.0, behind - before) / queries;
}

double keys_met(const OperatorTraits& op,
                c10::ArrayRef<IValue> inputs,
                const std::vector<Sequence>& sequences) {
  double queries = 0, met = 0;
  for (const Sequence& sequence : sequences) {
    if (sequence.queries == 0) continue;
    queries += sequence.queries;
    met += sequence.queries * keys_met(op, inputs, sequence);
  }
  return queries > 0 ? met / queries : 0;
}

/// Of every query with the keys that it meets: `products_of_keys` products as wide as keys, others
/// as values.
double attention_flops(const OperatorTraits& op,
                       c10::ArrayRef<IValue> inputs,
                       const std::vector<Sequence>& known,
                       int products_of_keys,
                       int products_of_values) {
  const at::Tensor& query = inputs[op.first_operand].toTensor();
  const at::Tensor& key = inputs[op.first_operand + 1].toTensor();
  const at::Tensor& value = inputs[op.first_operand + 2].toTensor();
  const auto query_rows = static_cast<double>(query.numel()) / static_cast<double>(query.size(-1));
  const auto widths =
      static_cast<double>(products_of_keys * key.size(-1) + products_of_values * value.size(-1));
  return 2.0 * query_rows * keys_met(op, inputs, sequences_of(op, inputs, known)) * widths;
}

/// What a kernel loads at once, from addresses that are multiples of it.
constexpr int64_t kVectorBytes = 16;

/// Of each matrix (the last two dims), the dim in which it is contiguous and the steps to the next
/// row and to the next matrix, as cuBLAS asks for them; a view may begin anywhere.
bool is_misaligned(const at::Tensor& matrices) {
  int64_t elements = matrices.storage_offset();
  for (int64_t dim = 0; dim < matrices.dim(); ++dim) {
    const bool is_row = matrices.stride(dim) == 1 && dim + 2 >= matrices.dim();
    elements |= is_row ? matrices.size(dim) : matrices.size(dim) > 1 ? matrices.stride(dim) : 0;
  }
  return elements * static_cast<int64_t>(matrices.itemsize()) % kVectorBytes != 0;
}

/// The result is contiguous in its last dim, which is that of the second matrix.
bool is_misaligned_product(const OperatorTraits& op, c10::ArrayRef<IValue> inputs) {
  if (op.flops != FlopRule::kMatrixProduct) return false;
  const at::Tensor& left = inputs[op.first_operand].toTensor();
  const at::Tensor& right = inputs[op.first_operand + 1].toTensor();
  const bool has_misaligned_result =
      right.size(-1) * static_cast<int64_t>(left.itemsize()) % kVectorBytes != 0;
  return has_misaligned_result || is_misaligned(left) || is_misaligned(right);
}

double product_flops(const OperatorTraits& op,
                     c10::ArrayRef<IValue> inputs,
                     const std::vector<Sequence>& known) {
  switch (op.flops) {
    case FlopRule::kOutputElements:
      return 0;
    case FlopRule::kMatrixProduct:
      return matrix_product_flops(inputs[op.first_operand].toTensor(),
                                  inputs[op.first_operand + 1].toTensor());
    case FlopRule::kAttentionForward:
      return attention_flops(op, inputs, known, 1, 1);
    case FlopRule::kAttentionBackward:
      return attention_flops(op, inputs, known, 3, 2);
  }
  return 0;
}

}  // namespace

size_t OperatorCallHash::operator()(const OperatorCall& call) const {
  size_t hash = std::hash<const void*>()(call.op);
  const auto mix = [&hash](int64_t value) {
    hash = (hash ^ static_cast<size_t>(value)) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32;
  };
  mix(static_cast<int64_t>(call.dtype) * 4 + (call.is_misaligned ? 2 : 0) +
      (call.is_strided ? 1 : 0));
  mix(call.bytes);
  mix(call.phase);
  mix(static_cast<int64_t>(call.direction));
  mix(static_cast<int64_t>(call.module_kind));
  mix(call.chunk);
  for (const int64_t value : call.flat_shapes) mix(value);
  return hash;
}

void measure_inputs(c10::ArrayRef<IValue> inputs, OperatorCall& call, const ReadIntegers& read) {
  const OperatorTraits& op = *call.op;
  call.dtype = c10::ScalarType::Undefined;
  call.flat_shapes.clear();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (has_bit(op.out_arguments, i)) continue;
    append_shape(inputs[i], call.flat_shapes);
    if (call.dtype == c10::ScalarType::Undefined) call.dtype = dtype_of(inputs[i]);
  }
  const bool has_packed = is_packed(op, inputs);
  const std::vector<Sequence> known =
      has_packed ? known_sequences(op, inputs, read) : std::vector<Sequence>();
  call.flops = op.flops == FlopRule::kOutputElements
                   ? static_cast<double>(elements_written_in_place(op, inputs))
                   : product_flops(op, inputs, known);
  call.has_unknown_lengths = has_packed && known.empty();
  call.bytes = input_bytes(op, inputs);
  call.is_strided = op.is_pointwise && !are_alike(inputs, op.device);
  call.is_misaligned = is_misaligned_product(op, inputs);
  call.other_dtype = op.is_pointwise ? other_dtype(inputs, call) : c10::ScalarType::Undefined;
}

void measure_outputs(c10::ArrayRef<IValue> outputs, OperatorCall& call) {
  const OperatorTraits& op = *call.op;
  int64_t elements = 0;
  int64_t bytes = 0;
  for (const IValue& output : outputs) {
    elements += elements_of(output);
    bytes += bytes_of(output, op.device);
    if (call.dtype == c10::ScalarType::Undefined) call.dtype = dtype_of(output);
  }
  if (inputs_tell_all(op)) return;
  if (op.flops == FlopRule::kOutputElements) call.flops += static_cast<double>(elements);
  call.bytes += op.bytes == ByteRule::kRowsRead ? 2 * bytes : bytes;
}

std::string other_dtype_name(const OperatorCall& call) {
  const bool has_one = call.other_dtype != c10::ScalarType::Undefined;
  return has_one ? c10::toString(call.other_dtype) : "";
}

std::vector<std::vector<int64_t>> shapes_of(const OperatorCall& call) {
  std::vector<std::vector<int64_t>> shapes;
  for (auto next = call.flat_shapes.begin(); next != call.flat_shapes.end();) {
    const int64_t dims = *next++;
    shapes.emplace_back(next, next + dims);
    next += dims;
  }
  return shapes;
}

estimator::OperatorRecord operator_record(const OperatorCall& call,
                                          std::string phase,
                                          int64_t count) {
  return {.name = call.op->name,
          .shapes = shapes_of(call),
          .dtype = c10::toString(call.dtype),
          .other_dtype = other_dtype_name(call),
          .is_strided = call.is_strided,
          .is_misaligned = call.is_misaligned,
          .flops = call.flops,
          .bytes = static_cast<double>(call.bytes),
          .phase = std::move(phase),
          .direction = call.direction,
          .module_kind = estimator::to_string(call.module_kind),
          .chunk = call.chunk,
          .count = count,
          .executed_count = count};
}

}  // namespace sim
