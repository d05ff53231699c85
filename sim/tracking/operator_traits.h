// What is known of an operator before it is called, from its registration with libtorch and from
// short tables of names.
//
// Which operators are counted. libtorch's operators call each other: linear calls addmm, a view
// calls as_strided, a sum first fills its output. The rules are:
//   - an operator with its own kernel for the device is counted as a whole; what it calls is part
//   of it;
//   - of a few, which run whole operators before their own kernel, both are counted;
//   - an operator that is composed of others is counted if it called nothing that was counted
//   (copy_, for example);
//   - a view or an allocation is never counted.
#pragma once

#include <c10/core/DeviceType.h>

#include <cstdint>
#include <string>

namespace c10 {
struct OperatorName;
}

namespace sim {

enum class FlopRule {
  kOutputElements,     ///< one for each element that is written
  kMatrixProduct,      ///< operands [.., m, k] and [.., k, n]: 2 m n k for each matrix
  kAttentionForward,   ///< two products of every query with every key
  kAttentionBackward,  ///< five products: the scores (computed again) and the gradients of queries
                       ///< and keys have the keys' width, those of weights and values the values'
};

/// How much of the first tensor argument is read and written. All other inputs are read as a whole,
/// and all outputs are written as a whole.
enum class ByteRule {
  kReadWhole,
  kNotRead,         ///< overwritten: fill_, zero_, copy_, random numbers, of lists of tensors too
  kRowsRead,        ///< a lookup reads as many bytes as its result has
  kBagsRead,        ///< a lookup reads a row for each index, and its result has fewer rows
  kRowsWritten,     ///< an update of rows writes as many bytes as go in (see RowRule), and no more
  kRowsUpdated,     ///< it reads them, too
  kTargetsWritten,  ///< of the output, one element is written for each target of the loss
};

/// How many elements an update of rows writes.
enum class RowRule {
  kLargestInput,  ///< as many as the largest of the other inputs has
  kOneIndex,      ///< rows of one dim, at the indices of an index tensor
  kIndices,       ///< at a list of index tensors, one for each of the first dims
};

struct OperatorTraits {
  std::string name;            ///< without overload: "aten::mm"
  bool takes_host = true;      ///< it counts for the host: no view, no framework's kernel
  bool moves_no_data = false;  ///< a view or an allocation: never counted
  bool is_kernel = false;      ///< it is counted, and the operators that it calls are not
  bool counts_calls = false;   ///< it is counted, and so are the operators that it calls
  bool is_pointwise = false;   ///< one result for each element: PyTorch's TensorIterator
  c10::DeviceType device = c10::DeviceType::CPU;  ///< tensors on other devices count no bytes
  FlopRule flops = FlopRule::kOutputElements;
  ByteRule bytes = ByteRule::kReadWhole;
  RowRule rows = RowRule::kLargestInput;
  int first_operand = 0;              ///< index of the first matrix, or of the query
  bool heads_before_sequence = true;  ///< attention on [b, h, s, d], else on [b, s, h, d]
  int causal_argument = -1;           ///< index of the argument that is true or not 0 if causal
  int mask_argument = -1;             ///< of attention: a tensor that is added to its scores
  int dropout_argument = -1;          ///< of attention: 0 if it has none
  int query_ends_argument = -1;       ///< of sequences one behind the other: where queries end
  int key_ends_argument = -1;         ///< ... and their keys
  int longest_key_argument = -1;      ///< of such sequences: the keys of the longest one
  int window_left_argument = -1;      ///< keys before its own that a query meets; < 0: all
  int window_right_argument = -1;     ///< keys behind it
  int beta_argument = -1;             ///< argument: if it is 0, a product does not read argument 0
  int accumulate_argument = -1;       ///< argument: if it is true, rows are updated, not written
  uint64_t unread_arguments = 0;      ///< bit i: only the sizes of argument i are used
  uint64_t out_arguments = 0;         ///< bit i: argument i is only written (`out=`)
  uint64_t unreturned_writes = 0;     ///< bit i: argument i is written but is no output
};

/// Throws std::logic_error when libtorch has no such operator.
OperatorTraits traits_of(const c10::OperatorName& name, c10::DeviceType device);
/// Of a framework's kernel that is no operator: "te::fused_rope".
OperatorTraits traits_of_kernel(std::string name, c10::DeviceType device);

}  // namespace sim
