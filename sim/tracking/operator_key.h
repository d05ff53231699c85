#pragma once

#include <ATen/record_function.h>
#include <torch/version.h>

namespace sim {

/// An address that tells operators apart: in the schema, where the overload's name lies. It is the
/// same for all that is no operator.
inline const char* operator_key(const at::RecordFunction& function) {
#if TORCH_VERSION_MINOR < 7
  return function.operator_name() ? function.name() : "";
#else
  return function.overload_name();
#endif
}

}  // namespace sim
