// One call of an operator, as a profile counts it: shapes, FLOPs and bytes.
//
// FLOPs. Matrix products: 2 m n k for each matrix. Attention forward: 2 b h sq sk (dk + dv), halved
// when causal; backward 2.5 times that (FlashAttention-2, Dao 2023, section 4.1). Any other
// operator: one for each element that it writes.
//
// Bytes. Every distinct tensor that goes in is read and every tensor that comes out is written, so
// an operator in place counts what it updates twice. Exceptions, by ByteRule: what is only
// overwritten is not read; a lookup reads as much of its table as comes out; an update of rows in
// place reads and writes as much as goes in. A dimension of stride 0 (an expanded tensor) is in
// memory once. Tensors of other devices than the rank's have no bytes, and a number of the program
// is no tensor.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <vector>

#include "estimator/profile/rank_profile.h"
#include "sim/tracking/module_tree.h"
#include "sim/tracking/operator_traits.h"

namespace sim {

struct OperatorCall {
  const OperatorTraits* op = nullptr;
  /// Of the first tensor: inputs, then outputs.
  c10::ScalarType dtype = c10::ScalarType::Undefined;
  double flops = 0;
  int64_t bytes = 0;
  int32_t phase = 0;
  estimator::Direction direction = estimator::Direction::kForward;
  ModuleKind module_kind = ModuleKind::kOther;
  /// For each tensor input its number of dimensions, then its sizes; see shapes_of().
  std::vector<int64_t> flat_shapes;

  bool operator==(const OperatorCall&) const = default;
};

struct OperatorCallHash {
  size_t operator()(const OperatorCall& call) const;
};

/// Starts the description of a call: sets shapes and dtype, and what FLOPs and bytes the inputs
/// tell. A list of tensors has one shape, its number of elements.
void measure_inputs(c10::ArrayRef<c10::IValue> inputs, OperatorCall& call);

/// Adds what the outputs tell.
void measure_outputs(c10::ArrayRef<c10::IValue> outputs, OperatorCall& call);

std::vector<std::vector<int64_t>> shapes_of(const OperatorCall& call);

}  // namespace sim
