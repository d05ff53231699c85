#include "sim/cli/torch/torch_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "estimator/base/errors.h"
#include "sim/cli/process/subprocess.h"
#include "sim/cli/torch/installation.h"
#include "sim/cli/torch/torch_stubs.h"

namespace sim {
namespace {

namespace fs = std::filesystem;

bool is_system_header(const std::string& name) {
  return fs::exists("/usr/include/" + name) || fs::exists("/usr/local/include/" + name);
}

TorchNeed known_release(const ProgramTorch& torch) {
  return {is_supported(torch),
          supported_torch_words(),
          "run the program with one of `onerank list torch`"};
}

/// What makes the stubs.
std::vector<TorchNeed> build_needs(const ProgramTorch& torch,
                                   const BuiltWith& built,
                                   const Environment& environment) {
  std::vector<TorchNeed> needs;
  struct Tool {
    const char* program;
    const char* package;
  };
  for (const auto& [program, package] :
       {Tool{"cmake", "cmake"}, {"ninja", "ninja-build"}, {"g++", "g++"}, {"nm", "binutils"}}) {
    needs.push_back({!find_executable(program, environment).empty(),
                     fmt::format("`{}`, which makes the stubs", program),
                     fmt::format("apt install {}", package)});
  }
  for (const auto& [header, package] :
       {Tool{"fmt/core.h", "libfmt-dev"}, {"nlohmann/json.hpp", "nlohmann-json3-dev"}}) {
    needs.push_back({is_system_header(header), header, fmt::format("apt install {}", package)});
  }
  needs.push_back({fs::exists(cuda_headers(built, torch) / kCudaHeader),
                   "NVIDIA's headers, " + cuda_headers(built, torch).string(),
                   is_for_cuda_12(torch)
                       ? "pip install --no-deps nvidia-cuda-runtime-cu12"
                       : "pip install --no-deps nvidia-cuda-runtime nvidia-cuda-crt"});
  return needs;
}

/// NVIDIA's functions that this torch calls and no stub has.
TorchNeed known_libraries(const std::string& python,
                          const ProgramTorch& torch,
                          const BuiltWith& built,
                          const Environment& environment,
                          const Interrupts& interrupts) {
  const fs::path folder = built.sources / "sim" / "virtual_gpu";
  std::vector<std::string> unknown;
  const SubprocessHooks hooks = {
      .on_output_line = [&](std::string_view line) { unknown.emplace_back(line); },
      .on_tick = [] {}};
  const SubprocessEnd end = run_subprocess({.program = python,
                                            .arguments = {(folder / "generate_stubs.py").string(),
                                                          "--torch-lib",
                                                          (torch.folder / "lib").string(),
                                                          "--libraries",
                                                          (folder / "libraries.ini").string(),
                                                          "--unknown"},
                                            .environment = environment},
                                           hooks,
                                           interrupts);
  if (end.exit_code != 0) unknown.push_back("could not be read: " + end.error_output);
  return {unknown.empty(),
          "every function of NVIDIA's that it calls has a stub",
          fmt::format("a program that calls them fails: {}", fmt::join(unknown, "; "))};
}

}  // namespace

TorchCheck check_torch(const std::string& python,
                       const Environment& environment,
                       const Interrupts& interrupts) {
  const auto torch = find_program_torch({python}, environment, interrupts);
  if (!torch) {
    throw estimator::UserError({.what = "no torch to check",
                                .where = "--check " + python,
                                .help = "give the Python interpreter that imports torch, as in "
                                        "`onerank list torch --check .venv/bin/python`"});
  }
  TorchCheck check{.torch = *torch, .needs = {known_release(*torch)}};
  check.needs.push_back({fs::exists(torch->folder / "lib" / "libtorch_cuda.so"),
                         "libtorch_cuda.so",
                         "install a torch that is built for CUDA"});
  if (is_built_for(torch->version)) return check;
  const BuiltWith built = built_with();
  for (TorchNeed& need : build_needs(*torch, built, environment)) {
    check.needs.push_back(std::move(need));
  }
  check.needs.push_back(known_libraries(python, *torch, built, environment, interrupts));
  return check;
}

}  // namespace sim
