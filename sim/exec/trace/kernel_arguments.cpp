#include "sim/exec/trace/kernel_arguments.h"

#include <algorithm>
#include <utility>

namespace sim {
namespace {

using estimator::BytesSource;
using estimator::TraceWork;

/// The lengths of this thread's loops, if Python has told them.
thread_local std::vector<int64_t> told_loops;

/// The numbers that a kernel was given, as far as they are sizes: not those with which it had more
/// elements than the largest block has bytes. They are something else, such as the bits of a float.
std::vector<int64_t> sizes_told(const onerank_virtual_gpu_event& event, int64_t largest) {
  if (!told_loops.empty()) return told_loops;
  std::vector<int64_t> sizes;
  int64_t elements = 1;
  for (int64_t i = 0; i < event.number_count; ++i) {
    const int64_t number = event.numbers[i];
    if (number <= 1 || number > largest / elements) continue;
    elements *= number;
    sizes.push_back(number);
  }
  return sizes;
}

}  // namespace

void KernelArguments::tensor_lies(uint64_t address, int64_t bytes) {
  const auto block = tracker_.block_around(address);
  if (block) tensors_[address] = {.bytes = bytes, .block = *block};
}

void KernelArguments::kernel_updates(const char* name,
                                     std::span<const uint64_t> addresses,
                                     int64_t updated) {
  std::set<uint64_t>& known = updated_[name];
  const auto split = addresses.begin() + updated;
  std::for_each(split, addresses.end(), [&](uint64_t address) { known.erase(address); });
  known.insert(addresses.begin(), split);
}

void KernelArguments::kernel_loops(std::span<const int64_t> lengths) {
  told_loops.assign(lengths.begin(), lengths.end());
}

/// Of the tensor that lies there, or else from there to the end of the block; 0 outside blocks.
int64_t KernelArguments::bytes_at(uint64_t address) const {
  const auto block = tracker_.block_around(address);
  if (!block) return 0;
  const auto tensor = tensors_.find(address);
  if (tensor != tensors_.end() && tensor->second.block == *block) return tensor->second.bytes;
  return static_cast<int64_t>(block->address + block->bytes - address);
}

/// What is behind the addresses, of a block each byte once.
KernelArguments::GivenMemory KernelArguments::memory_given_to(
    const onerank_virtual_gpu_event& event, const std::string& name) const {
  GivenMemory given;
  for (int64_t i = 0; i < event.address_count; ++i) {
    given.bytes[event.addresses[i]] = bytes_at(event.addresses[i]);
    ++given.times[event.addresses[i]];
  }
  for (auto part = given.bytes.begin(), next = part; part != given.bytes.end(); part = next) {
    if (++next == given.bytes.end()) break;
    part->second = std::min(part->second, static_cast<int64_t>(next->first - part->first));
  }
  for (const auto& [address, bytes] : given.bytes) given.largest = std::max(given.largest, bytes);
  const auto updated = updated_.find(name);
  if (updated == updated_.end()) return given;
  for (auto& [address, times] : given.times) {
    if (updated->second.contains(address)) times = std::max(times, int64_t{2});
  }
  return given;
}

/// A kernel that was told its number of elements moves no more of a block than eight bytes for
/// each: a part of a larger block counts as two bytes an element. If it has two threads and more
/// for each of these, they are the elements of one block, such as the logits of a token. What it
/// was given twice, or updates, is read and written.
int64_t KernelArguments::bytes_moved(const onerank_virtual_gpu_event& event,
                                     const GivenMemory& given,
                                     const std::vector<int64_t>& sizes) {
  int64_t elements = 1;
  for (const int64_t size : sizes) elements *= size;
  if (event.threads / 2 >= static_cast<uint64_t>(elements)) {
    const auto blocks = static_cast<int64_t>(event.blocks);
    elements *= std::max(std::min(blocks, given.largest / elements), int64_t{1});
  }
  constexpr int64_t kLargestElement = 8, kUsualElement = 2;
  const bool is_told = !sizes.empty();
  int64_t sum = 0;
  for (const auto& [address, bytes] : given.bytes) {
    const bool is_part = is_told && bytes / elements > kLargestElement;
    sum += given.times.at(address) * (is_part ? elements * kUsualElement : bytes);
  }
  return sum;
}

TraceWork KernelArguments::work_of(const onerank_virtual_gpu_event& event, std::string name) const {
  TraceWork work{.kind = estimator::WorkKind::kKernel,
                 .name = std::move(name),
                 .bytes = static_cast<int64_t>(event.bytes),
                 .threads = static_cast<int64_t>(event.threads)};
  if (event.bytes != 0) return work;
  if (event.address_count < 0) {
    work.bytes_source = BytesSource::kNothing;
    return work;
  }
  const GivenMemory given = memory_given_to(event, work.name);
  const std::vector<int64_t> sizes = sizes_told(event, given.largest);
  work.bytes = bytes_moved(event, given, sizes);
  work.bytes_source = BytesSource::kParameters;
  if (!sizes.empty()) work.shapes = {sizes};
  return work;
}

}  // namespace sim
