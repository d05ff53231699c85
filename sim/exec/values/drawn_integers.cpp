#include "sim/exec/values/drawn_integers.h"

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/core/PhiloxRNGEngine.h>
#include <dlfcn.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <vector>

#include "sim/exec/values/host_values.h"
#include "sim/exec/values/known_tensors.h"

namespace sim {
namespace {

/// What each thread draws at once, and by what the generator counts (ATen/native/cuda/
/// DistributionTemplates.h).
constexpr uint64_t kDrawnTogether = 4;
/// Of its blocks (the same).
constexpr uint64_t kBlockThreads = 256;
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

/// A number of cudaDeviceAttr of the device; 0 where there is no CUDA.
uint64_t attribute(int number) {
  using GetAttribute = int (*)(int*, int, int);
  const auto get = reinterpret_cast<GetAttribute>(dlsym(RTLD_DEFAULT, "cudaDeviceGetAttribute"));
  int value = 0;
  return get != nullptr && get(&value, number, 0) == 0 ? static_cast<uint64_t>(value) : 0;
}

/// Of the blocks that the device has room for at once, which are the most that PyTorch launches.
uint64_t most_threads() {
  constexpr int kMultiprocessors = 16, kThreadsOfMultiprocessor = 39;
  static const uint64_t threads = attribute(kMultiprocessors) *
                                  (attribute(kThreadsOfMultiprocessor) / kBlockThreads) *
                                  kBlockThreads;
  return threads;
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
  const bool is_small = followed_part(drawn->result_, gpu) <= 1 && most_threads() > 0;
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
  const uint64_t threads = most_threads();
  for (uint64_t thread = 0; thread < std::min(threads, numbers.size()); ++thread) {
    at::Philox4_32 draw(seed_, thread, drawn_before_ / kDrawnTogether);
    for (uint64_t i = thread; i < numbers.size(); i += threads) {
      numbers[i] = static_cast<double>(first_ + int64_t{draw()} % range_);
    }
  }
  make_known(result_, numbers, ValueOrigin::kKernel, gpu);
}

}  // namespace sim
