// One call of an operator, as a profile counts it: shapes, FLOPs and bytes.
//
// FLOPs. Matrix products: 2 m n k for each matrix. Attention forward: 2 b h sq sk (dk + dv), halved
// when causal, and with the keys of a window alone where there is one; backward 2.5 times that
// (FlashAttention-2, Dao 2023, section 4.1). Of sequences that lie one behind the other each counts
// with its own length. Any other operator: one for each element that it
// writes.
//
// Bytes. Every distinct input tensor is read and every output tensor is written, so an in-place
// operator counts what it updates twice. Exceptions, by ByteRule: a tensor that is only overwritten
// is not read; a lookup reads as many bytes of its table as its result has, or a row for each
// index; an update of rows writes the rows that go in, and reads them if it adds to them. A
// dimension of stride 0 (an expanded tensor) is in memory once. Tensors of other devices than the
// rank's count no bytes, and a plain number is no tensor.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "estimator/profile/rank_profile.h"
#include "sim/tracking/module_tree.h"
#include "sim/tracking/operator_traits.h"

namespace sim {

struct OperatorCall {
  const OperatorTraits* op = nullptr;
  /// Type of the first tensor among the inputs, then the outputs.
  c10::ScalarType dtype = c10::ScalarType::Undefined;
  /// Of the first input of another type, if there is one.
  c10::ScalarType other_dtype = c10::ScalarType::Undefined;
  /// A pointwise operator whose inputs do not all fill memory in the same order: views, transposed
  /// or broadcast tensors. PyTorch's kernels then read and write one element at a time.
  bool is_strided = false;
  /// A product with matrices whose rows in memory, or the distances of these rows, are no multiples
  /// of 16 bytes.
  bool is_misaligned = false;
  /// Attention over sequences that lie one behind the other, whose lengths the host does not know.
  bool has_unknown_lengths = false;
  double flops = 0;
  int64_t bytes = 0;
  int32_t phase = 0;
  estimator::Direction direction = estimator::Direction::kForward;
  ModuleKind module_kind = ModuleKind::kOther;
  int64_t chunk = -1;  ///< of the stage, or -1
  /// For each input tensor, its number of dimensions followed by its sizes; see shapes_of().
  std::vector<int64_t> flat_shapes;

  bool operator==(const OperatorCall&) const = default;
};

struct OperatorCallHash {
  size_t operator()(const OperatorCall& call) const;
};

/// The elements of a tensor of integers with one dimension; none where they are not known.
using ReadIntegers = std::function<std::optional<std::vector<int64_t>>(const at::Tensor&)>;

/// Starts the description of a call: sets shapes and dtype, and the part of FLOPs and bytes that
/// follows from the inputs. A list of tensors has one shape, its number of elements. `read` is
/// asked where sequences end that lie one behind the other; if it is empty, that is not known.
void measure_inputs(c10::ArrayRef<c10::IValue> inputs,
                    OperatorCall& call,
                    const ReadIntegers& read = {});

/// Adds the part of FLOPs and bytes that follows from the outputs.
void measure_outputs(c10::ArrayRef<c10::IValue> outputs, OperatorCall& call);

std::vector<std::vector<int64_t>> shapes_of(const OperatorCall& call);
/// "" where all inputs have one type.
std::string other_dtype_name(const OperatorCall& call);

/// The call in the form of a profile. `count` is used for both the planned and the executed count.
estimator::OperatorRecord operator_record(const OperatorCall& call,
                                          std::string phase,
                                          int64_t count);

}  // namespace sim
