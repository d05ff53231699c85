#include "sim/tracking/torch_version.h"

#include <fmt/format.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/version.h>

#include "estimator/base/errors.h"

namespace sim {
namespace {

constexpr uint64_t kBuiltFor = uint64_t{TORCH_VERSION_MAJOR} << 56 |
                               uint64_t{TORCH_VERSION_MINOR} << 48 |
                               uint64_t{TORCH_VERSION_PATCH} << 40;

/// Major, minor and patch are its three highest bytes. torch 2.6 does not tell: a recorder that was
/// built for another one does not load, since their strings differ.
uint64_t loaded_version() {
#if TORCH_VERSION_MINOR < 7
  return kBuiltFor;
#else
  return aoti_torch_abi_version() >> 40 << 40;
#endif
}

std::string version_text(uint64_t version) {
  return fmt::format("{}.{}.{}", version >> 56 & 0xff, version >> 48 & 0xff, version >> 40 & 0xff);
}

}  // namespace

std::string torch_version() { return version_text(loaded_version()); }

void check_torch_version() {
  if (loaded_version() == kBuiltFor) return;
  throw estimator::UserError(
      {.what = "the torch that is loaded is not the one that Onerank was built for",
       .where = fmt::format("loaded {}, built for {}", torch_version(), version_text(kBuiltFor)),
       .help = "run scripts/quickstart --torch DIR to build for this one"},
      estimator::ExitCode::kMachineLacks);
}

}  // namespace sim
