#include "comm_stub/nccl/own_operations.h"

#include <map>
#include <mutex>

namespace nccl {
namespace {

struct Operations {
  std::mutex mutex;
  std::map<int, ScaledSum> sums;  // by number
  int next = ncclNumOps;
};

/// Never destroyed: collectives are called while a program ends.
Operations& operations() {
  static auto* const operations = new Operations;
  return *operations;
}

}  // namespace

ncclRedOp_t add_operation(const ScaledSum& sum) {
  const std::lock_guard lock(operations().mutex);
  operations().sums.emplace(operations().next, sum);
  return static_cast<ncclRedOp_t>(operations().next++);
}

bool remove_operation(ncclRedOp_t operation) {
  const std::lock_guard lock(operations().mutex);
  return operations().sums.erase(operation) > 0;
}

std::optional<ScaledSum> find_operation(ncclRedOp_t operation) {
  const std::lock_guard lock(operations().mutex);
  const auto found = operations().sums.find(operation);
  return found == operations().sums.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace nccl
