// What the virtual GPU and its libraries tell of a work, in the form of a trace.
#pragma once

#include <string>

#include "estimator/profile/trace.h"
#include "sim/virtual_gpu/control.h"

namespace sim {

/// The part of a kernel's name before its parameters, which tells it apart.
std::string readable_name(const char* mangled);

estimator::TraceWork product_work(const onerank_virtual_gpu_product& product);

/// As the operator of PyTorch that calls the kernel would be recorded.
estimator::TraceWork attention_work(const onerank_virtual_gpu_event& event,
                                    const onerank_virtual_gpu_attention& attention);

estimator::TraceWork copy_work(const onerank_virtual_gpu_event& event);

}  // namespace sim
