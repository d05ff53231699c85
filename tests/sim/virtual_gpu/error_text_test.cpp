#include <cuda.h>
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "tests/paths.h"

/// The errors that the sources of the virtual GPU name, and those for which it has a text.
namespace {

using testing::Contains;

constexpr int kMostErrors = 1000;  // cudaErrorUnknown is 999

std::set<std::string> named_in(const std::string& folder, const char* pattern) {
  std::set<std::string> names;
  const std::regex error(pattern);
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    std::ifstream source(file.path());
    const std::string text{std::istreambuf_iterator<char>(source), {}};
    const std::sregex_iterator found(text.begin(), text.end(), error);
    for (auto one = found; one != std::sregex_iterator(); ++one) names.insert(one->str());
  }
  return names;
}

std::set<std::string> told_by_runtime() {
  std::set<std::string> names;
  for (int i = 0; i < kMostErrors; ++i) {
    const auto error = static_cast<cudaError_t>(i);
    const std::string text = cudaGetErrorString(error);
    if (text != "unrecognized error code") names.insert(cudaGetErrorName(error));
  }
  return names;
}

std::set<std::string> told_by_driver() {
  std::set<std::string> names;
  for (int i = 0; i < kMostErrors; ++i) {
    const char* name = nullptr;
    if (cuGetErrorName(static_cast<CUresult>(i), &name) == CUDA_SUCCESS) names.insert(name);
  }
  return names;
}

TEST(ErrorText, IsThereForEachErrorOfTheRuntime) {
  const std::set<std::string> told = told_by_runtime();
  const std::string folder = std::string(tests::kVirtualGpuSources) + "/cudart";
  const std::set<std::string> named = named_in(folder, "cudaError[A-Z]\\w+");
  EXPECT_GT(named.size(), 10u);
  for (const std::string& name : named) EXPECT_THAT(told, Contains(name));
}

TEST(ErrorText, IsThereForEachErrorOfTheDriver) {
  const std::set<std::string> told = told_by_driver();
  const std::string folder = std::string(tests::kVirtualGpuSources) + "/cuda";
  const std::set<std::string> named = named_in(folder, "CUDA_ERROR_\\w+");
  EXPECT_GT(named.size(), 6u);
  for (const std::string& name : named) EXPECT_THAT(told, Contains(name));
}

}  // namespace
