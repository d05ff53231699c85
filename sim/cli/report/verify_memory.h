// Checks whether this machine has enough memory for the real ranks of a verification.
#pragma once

#include <cstdint>

#include "estimator/plan/plan.h"

namespace sim {

/// Bytes that all real ranks and the whole model together hold between iterations: parameters,
/// gradients, master weights, optimizer state. Activations need more memory on top.
int64_t least_verification_bytes(const estimator::Plan& plan);

/// Throws UserError (this machine lacks something) when `available_bytes` is less than
/// least_verification_bytes().
void require_memory_for_verification(const estimator::Plan& plan, int64_t available_bytes);

}  // namespace sim
