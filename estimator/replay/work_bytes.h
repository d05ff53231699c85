// The bytes that a work of a trace moves.
#pragma once

#include <string_view>

#include "estimator/profile/trace.h"

namespace estimator {

/// Bytes of an element of a type that has c10's or NCCL's name.
int64_t bytes_of_element(std::string_view dtype);

/// Read and written. Of a product those of its matrices, whose trace has only their shape; a
/// convolution tells its own.
double moved_bytes(const TraceWork& work);

}  // namespace estimator
