// Whether the ranks of a plan can be real on this machine.
#pragma once

#include <cstdint>

#include "estimator/plan/plan.h"

namespace sim {

/// Bytes that all real ranks and the whole model beside them hold between iterations: parameters,
/// gradients, master weights, optimizer state. Activations come on top.
int64_t least_verification_bytes(const estimator::Plan& plan);

/// Throws UserError (this machine lacks something) when `available_bytes` are less than that.
void require_memory_for_verification(const estimator::Plan& plan, int64_t available_bytes);

/// MemAvailable of /proc/meminfo.
int64_t available_memory_bytes();

}  // namespace sim
