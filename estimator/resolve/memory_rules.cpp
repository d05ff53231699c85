#include <regex>

#include "estimator/base/fields.h"
#include "estimator/plan/allocator_settings.h"
#include "estimator/resolve/subject_rules.h"

namespace estimator {

void check_headroom(Rules& rules) {
  constexpr int64_t kLeast = int64_t{1} << 20;
  const int64_t bytes = rules.plan().memory.headroom_bytes;
  rules.require(bytes <= 0 || bytes >= kLeast,
                "the headroom is less than a MiB",
                fmt::format("memory.headroom_bytes = {}", bytes),
                fmt::format("write --headroom {}GiB or --headroom {}%", bytes, bytes));
}

void check_allocator(Rules& rules) {
  const std::string& settings = rules.plan().memory.allocator;
  if (auto problem =
          find_allocator_problem(settings, rules.context().origin + ": memory.allocator")) {
    rules.add(std::move(*problem));
  }
}

/// parseChosenWorkspaceSize() in aten/src/ATen/cuda/CublasHandlePool.cpp takes pairs of a size in
/// KiB and a count, and falls back to its default for anything else.
void check_cublas_workspace(Rules& rules) {
  static const std::regex kPairs("(:[0-9]{1,9}:[0-9]{1,9})*");
  const std::string& workspace = rules.plan().memory.cublas_workspace;
  constexpr std::size_t kLongest = 200;  // std::regex goes down its stack with each letter
  rules.require(workspace.size() <= kLongest && std::regex_match(workspace, kPairs),
                "cuBLAS does not accept this workspace setting",
                "memory.cublas_workspace = " + shown(workspace),
                "write :SIZE_IN_KIB:COUNT, such as :4096:8");
}

}  // namespace estimator
