// The libraries that `onerank exec` loads into a program: stubs of NVIDIA's libraries, and a
// recorder that is compiled with torch's headers. They are made for one build of torch.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/cli/process/environment.h"
#include "sim/cli/process/interrupts.h"
#include "sim/cli/torch/installation.h"
#include "sim/cli/torch/program_torch.h"

namespace sim {

/// A release of torch that programs may have. Its builds for CUDA 12 and 13 are taken,
/// wheels or not.
struct SupportedTorch {
  std::string release;     ///< "2.11"
  std::string wheel;       ///< that was tried, "2.11.0+cu130"
  std::string tested;      ///< what was run with it
  bool built_for = false;  ///< Onerank was built for this wheel, so ranks of a plan run with it
};
template <class Visitor>
void visit_fields(Visitor& visit, SupportedTorch& torch) {
  visit("torch", torch.release, "its release");
  visit("wheel", torch.wheel, "PyPI's wheel that was tried");
  visit("tested", torch.tested, "what was run with it");
  visit("built_for", torch.built_for, "Onerank was built for it: ranks of a plan run with it");
}
const std::vector<SupportedTorch>& supported_torch();

/// "torch 2.6 to 2.15, built for CUDA 12 or 13"
std::string supported_torch_words();

/// Whether it is a build of one of these releases for CUDA 12 or 13.
bool is_supported(const ProgramTorch& torch);

bool is_for_cuda_12(const ProgramTorch& torch);

/// One of NVIDIA's headers.
inline constexpr const char* kCudaHeader = "cuda_runtime_api.h";

/// NVIDIA's headers for this torch: those that Onerank was built with, or those of the packages
/// beside torch. The folder is not there when they are not.
std::filesystem::path cuda_headers(const BuiltWith& built, const ProgramTorch& torch);

/// The folder that has virtual_gpu/ and exec/ for this torch. For the torch for which Onerank was
/// built it is the program's own folder. For another torch that works they are built at their first
/// use, with CMake and a compiler, which takes minutes, and are kept in the user's folder for
/// caches. They are built again when Onerank's sources change. Throws UserError (this machine lacks
/// something) for a torch that is not known to work, or when they cannot be built.
std::filesystem::path stubs_for(const ProgramTorch& torch,
                                const Environment& environment,
                                const Interrupts& interrupts);

}  // namespace sim
