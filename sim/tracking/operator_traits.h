// What is known of an operator before it is called: from its registration with libtorch, and from
// short tables of names.
//
// Which operators are work. libtorch's operators call each other: linear calls addmm, a view calls
// as_strided, a sum fills its output first. Counted is
//   - an operator that has a kernel of its own for the device, as a whole: what it calls is part of
//   it;
//   - an operator composed of others that called nothing which was counted (copy_, for one);
//   - never a view or an allocation.
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
  kAttentionBackward,  ///< five: scores (made again) and the gradients of queries, keys, as wide as
                       ///< keys, of weights and values, as wide as values
};

/// What is read and written of the first tensor argument. All other inputs are read, all outputs
/// written, each as a whole.
enum class ByteRule {
  kReadWhole,
  kNotRead,      ///< overwritten: fill_, zero_, copy_, random numbers
  kRowsRead,     ///< a lookup: as much as comes out
  kRowsUpdated,  ///< an update of some rows in place: as much as goes in, read and written
};

struct OperatorTraits {
  std::string name;            ///< without overload: "aten::mm"
  bool moves_no_data = false;  ///< a view or an allocation: never counted
  bool is_kernel = false;      ///< counted itself, in place of the operators that it calls
  c10::DeviceType device = c10::DeviceType::CPU;  ///< tensors elsewhere have no bytes
  FlopRule flops = FlopRule::kOutputElements;
  ByteRule bytes = ByteRule::kReadWhole;
  int first_operand = 0;              ///< argument of the first matrix, or of the query
  bool heads_before_sequence = true;  ///< attention on [b, h, s, d], else on [b, s, h, d]
  int causal_argument = -1;           ///< argument that is true or not 0 for causal attention
  int beta_argument = -1;          ///< argument that, if 0, leaves argument 0 of a product unread
  uint64_t out_arguments = 0;      ///< bit i: argument i is only written (`out=`)
  uint64_t unreturned_writes = 0;  ///< bit i: argument i is written, and not among the outputs
};

/// Throws std::logic_error when libtorch has no such operator.
OperatorTraits traits_of(const c10::OperatorName& name, c10::DeviceType device);

}  // namespace sim
