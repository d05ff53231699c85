// The bytes that one call of an operator reads and writes, by the rule of the operator
// (operator_call.h has the rules in words).
#pragma once

#include <ATen/core/ivalue.h>

#include <cstddef>
#include <cstdint>

#include "sim/tracking/operator_traits.h"

namespace sim {

/// Whether the argument with this index is marked in `bits`.
bool has_bit(uint64_t bits, size_t index);

/// Whether a number is 0.
bool is_zero(const c10::IValue& value);

/// Of all tensors in `value` on `device`; a dimension of stride 0 is in memory once.
int64_t bytes_of(const c10::IValue& value, c10::DeviceType device);
int64_t elements_of(const c10::IValue& value);

/// What is read of the inputs, and written of them where they are no results.
int64_t input_bytes(const OperatorTraits& op, c10::ArrayRef<c10::IValue> inputs);

/// What the inputs tell of the elements that the operator writes.
int64_t elements_written_in_place(const OperatorTraits& op, c10::ArrayRef<c10::IValue> inputs);

/// Whether the inputs tell all that is written, so that the outputs count no bytes.
bool inputs_tell_all(const OperatorTraits& op);

}  // namespace sim
