#include "sim/tracking/torch_version.h"

#include <fmt/format.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/headeronly/version.h>

#include "estimator/base/errors.h"

namespace sim {
namespace {

/// TORCH_ABI_VERSION packs major, minor and patch into its three highest bytes.
std::string version_text(uint64_t abi_version) {
  return fmt::format(
      "{}.{}.{}", abi_version >> 56 & 0xff, abi_version >> 48 & 0xff, abi_version >> 40 & 0xff);
}

}  // namespace

std::string torch_version() { return version_text(aoti_torch_abi_version()); }

void check_torch_version() {
  const uint64_t built_for = TORCH_ABI_VERSION;
  if (aoti_torch_abi_version() == built_for) return;
  throw estimator::UserError(
      {.what = "the torch that is loaded is not the one that Onerank was built for",
       .where = fmt::format("loaded {}, built for {}", torch_version(), version_text(built_for)),
       .help = "run scripts/quickstart --torch DIR to build for this one"},
      estimator::ExitCode::kMachineLacks);
}

}  // namespace sim
