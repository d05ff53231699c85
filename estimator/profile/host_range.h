// Names of the ranges in which a rank tells what its framework does on the host, and the rank does
// not run: models/shard/host_work.h. Behind kHostRange is one of these, or a function of Python.
#pragma once

#include <string>

namespace estimator {

inline const std::string kHostRange = "host::";
inline constexpr const char* kDispatch = "dispatch";                 ///< of one operator
inline constexpr const char* kDispatchedAgain = "dispatched_again";  ///< as each operator in it

}  // namespace estimator
