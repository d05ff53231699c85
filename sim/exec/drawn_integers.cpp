#include "sim/exec/drawn_integers.h"

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/core/PhiloxRNGEngine.h>

#include <mutex>
#include <optional>
#include <vector>

#include "sim/exec/host_values.h"

namespace sim {
namespace {

/// What each thread draws at once, and by what the generator counts (ATen/native/cuda/
/// DistributionTemplates.h).
constexpr uint64_t kDrawnTogether = 4;
/// So many elements have a thread each on every GPU with 16 multiprocessors; a thread that has
/// several takes its further numbers for them.
constexpr int64_t kMostThreads = 16 * 2048;
constexpr int64_t kRangeOfWideKernel = int64_t{1} << 28;

struct Bounds {
  int64_t first = 0;
  int64_t end = 0;

  bool are_followed() const {
    return -kRangeOfWideKernel < first && first < end && end < kRangeOfWideKernel &&
           end - first < kRangeOfWideKernel;
  }
};

/// Of random_(self, from, to, generator) and random_(self, to, generator).
std::optional<Bounds> bounds_in(c10::ArrayRef<c10::IValue> inputs) {
  if (inputs.size() == 4 && inputs[1].isInt() && inputs[2].isInt()) {
    return Bounds{inputs[1].toInt(), inputs[2].toInt()};
  }
  if (inputs.size() == 3 && inputs[1].isInt()) return Bounds{0, inputs[1].toInt()};
  return std::nullopt;
}

at::Generator generator_of(const c10::IValue& argument, const at::Device& device) {
  return argument.isNone() ? at::globalContext().defaultGenerator(device) : argument.toGenerator();
}

}  // namespace

bool draws_integers(std::string_view operator_name) { return operator_name == "aten::random_"; }

std::unique_ptr<DrawnIntegers> DrawnIntegers::prepare(const at::RecordFunction& function,
                                                      const VirtualGpu& gpu) try {
  const auto inputs = function.inputs();
  const auto bounds = bounds_in(inputs);
  if (!bounds || !bounds->are_followed() || !inputs[0].isTensor()) return nullptr;
  auto drawn = std::make_unique<DrawnIntegers>();
  drawn->result_ = inputs[0].toTensor();
  drawn->first_ = bounds->first;
  drawn->range_ = bounds->end - bounds->first;
  const bool is_small =
      drawn->result_.numel() <= kMostThreads && drawn->result_.nbytes() <= gpu.largest_bytes;
  if (!is_small || !drawn->result_.is_cuda() || !drawn->result_.is_contiguous()) return nullptr;
  at::Generator generator = generator_of(inputs.back(), drawn->result_.device());
  const std::lock_guard lock(generator.mutex());
  drawn->seed_ = generator.current_seed();
  drawn->drawn_before_ = generator.get_offset();
  return drawn;
} catch (const std::exception&) {
  return nullptr;  // the generator is a graph's: what it draws is told at each launch
}

void DrawnIntegers::finish(const VirtualGpu& gpu) const {
  std::vector<double> numbers(static_cast<size_t>(result_.numel()));
  for (size_t i = 0; i < numbers.size(); ++i) {
    at::Philox4_32 thread(seed_, i, drawn_before_ / kDrawnTogether);
    numbers[i] = static_cast<double>(first_ + int64_t{thread()} % range_);
  }
  make_known(result_, numbers, ValueOrigin::kKernel, gpu);
}

}  // namespace sim
