// The classes of c10d as torch's current release has them, for every release 2.x for which the
// stubs are built: what came later than the release is added here, where nobody calls it.
#pragma once

#include <torch/version.h>

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

namespace comm_stub {

#if TORCH_VERSION_MINOR < 7
enum class ErrorType { SUCCESS };
#else
using c10d::ErrorType;
#endif

#if TORCH_VERSION_MINOR < 9

class Backend : public c10d::Backend {
 public:
  using c10d::Backend::Backend;
#if TORCH_VERSION_MINOR < 7
  virtual ErrorType getError() { return ErrorType::SUCCESS; }
  virtual bool supportsCoalescing() const { return false; }
#endif
  virtual c10::intrusive_ptr<Options> getBackendOptions() = 0;
  virtual void setTimeout(std::chrono::milliseconds timeout) = 0;
};

class Work : public c10d::Work {
 public:
  using c10d::Work::Work;
  virtual void blockCurrentStream() = 0;
};

inline void name_group(c10d::Backend::Options&, const std::string&) {}

#else

using c10d::Backend;
using c10d::Work;

inline void name_group(c10d::Backend::Options& options, const std::string& name) {
  options.group_name = name;
}

#endif

/// Whether a call returns before it is done. Before torch 2.8 some calls do not say, and all are
/// taken as such.
template <class Options>
bool is_asynchronous(const Options& options) {
  if constexpr (requires { options.asyncOp; }) {
    return options.asyncOp;
  }
  return true;
}

}  // namespace comm_stub
