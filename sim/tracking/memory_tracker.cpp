#include "sim/tracking/memory_tracker.h"

#include <c10/util/accumulate.h>

#include <utility>

namespace sim {
namespace {

/// Where the tensor's storage begins; 0 where it has none.
uint64_t address_of(const at::Tensor& tensor) {
  if (!tensor.has_storage()) return 0;
  return reinterpret_cast<uint64_t>(tensor.storage().data());
}

size_t tensor_bytes(const Allocation& block) {
  if (!block.is_tensor()) return 0;
  return c10::multiply_integers(block.shape) * c10::elementSize(block.dtype);
}

}  // namespace

void MemoryTracker::block_requested(uint64_t address, int64_t bytes, int64_t stream) {
  request_ = {address, bytes, stream};
}

void MemoryTracker::block_made(uint64_t address,
                               int64_t bytes,
                               int64_t allocated_bytes,
                               const MemoryOrigin& origin) {
  const Request request = std::exchange(request_, {});
  const bool is_known = request.address == address;
  log_.made({.address = address,
             .bytes = bytes,
             .requested_bytes = is_known ? request.bytes : bytes,
             .stream = is_known ? request.stream : 0,
             .origin = origin},
            allocated_bytes);
  allocated_bytes_ = allocated_bytes;
  peaks_.note(origin.place.module, origin.place.direction, allocated_bytes);
}

void MemoryTracker::block_freed(uint64_t address, int64_t allocated_bytes) {
  log_.freed(address);
  allocated_bytes_ = allocated_bytes;
}

/// The first of the largest tensors that were seen in a block describes it.
void MemoryTracker::saw_tensor(const at::Tensor& tensor) {
  Allocation* block = log_.find(address_of(tensor));
  if (block == nullptr) return;
  const size_t bytes = tensor.nbytes();
  if (bytes <= tensor_bytes(*block) || bytes > tensor.storage().nbytes()) return;
  block->dtype = tensor.scalar_type();
  block->shape = tensor.sizes().vec();
  block->requested_bytes = static_cast<int64_t>(tensor.storage().nbytes());
}

void MemoryTracker::saw_communication(const at::Tensor& tensor) {
  saw_tensor(tensor);
  communicated(address_of(tensor));
}

void MemoryTracker::communicated(uint64_t address) {
  if (Allocation* block = log_.find(address)) block->communicated = true;
}

void MemoryTracker::gathered(uint64_t address) {
  if (Allocation* block = log_.find(address)) block->gathered = true;
}

void MemoryTracker::reduced(uint64_t address) {
  if (Allocation* block = log_.find(address)) block->reduced = true;
}

void MemoryTracker::saw_lasting(const at::Tensor& tensor,
                                const estimator::LastingMemory& memory,
                                ModuleId owner) {
  saw_tensor(tensor);
  lasts(address_of(tensor), memory, owner);
}

void MemoryTracker::lasts(uint64_t address,
                          const estimator::LastingMemory& memory,
                          ModuleId owner) {
  Allocation* block = log_.find(address);
  if (block == nullptr) return;
  block->state = memory.category;
  block->owner = owner;
  block->name = memory.name;
}

int64_t MemoryTracker::forward_ended(int64_t since, estimator::Direction direction) {
  int64_t kept_bytes = 0;
  log_.for_each_alive(since, [&](Allocation& block) {
    if (block.origin.place.direction != direction) return;
    block.outlived_forward = true;
    if (category_of(block) == estimator::MemoryCategory::kActivation) kept_bytes += block.bytes;
  });
  return kept_bytes;
}

void MemoryTracker::phase_ended() {
  log_.for_each_alive(0, [](Allocation& block) { block.outlived_phase = true; });
}

void MemoryTracker::iteration_ended() {
  log_.for_each_alive(0, [&](Allocation& block) {
    if (block.made_at < iteration_began_) block.outlived_forward = false;
  });
  iteration_began_ = log_.now();
}

void MemoryTracker::operator_ended(uint64_t address, ModuleId cublas) {
  Allocation* block = log_.find(address);
  if (block == nullptr || block->is_tensor()) return;
  block->outlived_operator = true;
  if (block->origin.op->flops == FlopRule::kMatrixProduct) block->owner = cublas;
}

}  // namespace sim
