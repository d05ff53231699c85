#include "sim/tracking/frame_store.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "sim/virtual_gpu/demangled.h"

namespace sim {
namespace {

constexpr int kDeepest = 96;

std::string name_of(void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0) return "?";
  if (info.dli_sname != nullptr) return virtual_gpu::demangled(info.dli_sname);
  const std::string_view library = info.dli_fname;
  return fmt::format("? ({})", library.substr(library.rfind('/') + 1));
}

/// Part of watching memory, or of the allocator that is watched.
bool is_of_the_watch(const std::string& name) {
  return name.find("sim::FrameStore") != name.npos || name.find("sim::RunTracker") != name.npos ||
         name.find("reportMemoryUsageToProfiler") != name.npos ||
         name.find("CachingAllocator") != name.npos || name.find("? (libc10_cuda.so)") == 0;
}

}  // namespace

int32_t FrameStore::capture() {
  std::array<void*, kDeepest> addresses;
  const int depth = backtrace(addresses.data(), kDeepest);
  const auto [known, is_new] = numbers_.try_emplace(
      Stack(addresses.begin(), addresses.begin() + depth), static_cast<int32_t>(stacks_.size()));
  if (is_new) stacks_.push_back(&known->first);
  return known->second;
}

std::vector<std::string> FrameStore::names(int32_t stack) const {
  std::vector<std::string> names;
  for (void* address : *stacks_.at(stack)) names.push_back(name_of(address));
  const auto first = std::find_if_not(names.begin(), names.end(), is_of_the_watch);
  names.erase(names.begin(), first);
  return names;
}

}  // namespace sim
