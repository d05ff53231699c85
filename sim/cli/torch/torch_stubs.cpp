#include "sim/cli/torch/torch_stubs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <fstream>

#include "estimator/base/errors.h"
#include "estimator/base/machine_share.h"
#include "estimator/base/stable_hash.h"
#include "sim/cli/process/file_lock.h"
#include "sim/cli/process/output.h"
#include "sim/cli/process/private_folder.h"
#include "sim/cli/process/subprocess.h"
#include "sim/cli/torch/installation.h"

namespace sim {
namespace {

namespace fs = std::filesystem;
using estimator::ExitCode;
using estimator::UserError;

/// "12" of "12.8".
std::string major_of(const std::string& cuda) { return cuda.substr(0, cuda.find('.')); }

[[noreturn]] void refuse(const ProgramTorch& torch) {
  throw UserError(
      {.what = "this torch is not one that `onerank exec` works with",
       .where = fmt::format("{}: {}, {}",
                            torch.folder.string(),
                            torch.version,
                            torch.cuda.empty() ? "without CUDA" : "for CUDA " + torch.cuda),
       .help = fmt::format("run the program with {}; see `onerank list torch`",
                           supported_torch_words())},
      ExitCode::kMachineLacks);
}

/// `caches` is Onerank's.
fs::path stubs_folder(const fs::path& caches, const BuiltWith& built, const ProgramTorch& torch) {
  // CMake's folder knows both by their paths.
  const uint64_t paths =
      estimator::stable_hash(built.sources.string() + "\n" + torch.folder.string());
  return caches / fmt::format("torch-{}-{}-{:x}", torch.version, torch.build.substr(0, 12), paths);
}

/// By processors and memory: a file with torch's headers takes 0.9 GiB to compile.
std::string jobs() {
  const estimator::MachineShare share = estimator::machine_share();
  const int64_t by_memory = share.memory_bytes / (int64_t{3} << 29);
  return std::to_string(std::max<int64_t>(1, std::min(share.processors, by_memory)));
}

class StubsBuild {
 public:
  StubsBuild(const ProgramTorch& torch,
             const BuiltWith& built,
             fs::path folder,
             const Environment& environment,
             const Interrupts& interrupts)
      : torch_(torch),
        built_(built),
        folder_(std::move(folder)),
        environment_(environment),
        interrupts_(interrupts) {}

  void run() {
    const FileLock lock(
        folder_ / "lock", "another onerank that makes the stubs for this torch", interrupts_);
    if (!fs::exists(folder_ / "exec" / "libonerank_exec_recorder.so")) {
      write_to_standard_error(
          fmt::format("onerank: making the stubs for torch {}, once: some minutes ({})\n",
                      torch_.version,
                      log().string()));
    }
    if (!fs::exists(folder_ / "build.ninja")) {
      cmake({"-S",
             built_.sources.string(),
             "-B",
             folder_.string(),
             "--preset",
             "release",
             "-DONERANK_STUBS_ONLY=ON",
             "-DONERANK_TORCH_DIR=" + torch_.folder.string(),
             "-DONERANK_CUDA_INCLUDE_DIR=" + cuda_headers(built_, torch_).string()});
    }
    cmake({"--build", folder_.string(), "--target", "onerank_exec_recorder", "--parallel", jobs()});
  }

 private:
  fs::path log() const { return folder_ / "log"; }

  [[noreturn]] void fail(const std::string& why) const {
    throw UserError({.what = fmt::format("the stubs for torch {} cannot be made", torch_.version),
                     .where = why,
                     .help = "`onerank list torch --check PYTHON` says what they need and lack"},
                    ExitCode::kMachineLacks);
  }

  void cmake(std::vector<std::string> arguments) const {
    std::ofstream log_file(log());
    const SubprocessHooks hooks = {
        .on_output_line = [&](std::string_view line) { log_file << line << std::endl; },
        .on_tick = [] {}};
    const SubprocessEnd end = run_subprocess(
        {.program = "cmake", .arguments = std::move(arguments), .environment = environment_},
        hooks,
        interrupts_);
    log_file << end.error_output;
    if (end.exit_code != 0 || end.signal_number != 0) fail("cmake failed, see " + log().string());
  }

  const ProgramTorch& torch_;
  const BuiltWith& built_;
  const fs::path folder_;
  const Environment& environment_;
  const Interrupts& interrupts_;
};

}  // namespace

const std::vector<SupportedTorch>& supported_torch() {
  static const std::vector<SupportedTorch> kAll = [] {
    constexpr const char* kSmall = "DDP, FSDP2, messages between ranks";
    std::vector<SupportedTorch> all = {
        {"2.6", "2.6.0+cu124", kSmall},
        {"2.7", "2.7.1+cu126", kSmall},
        {"2.8", "2.8.0+cu128", kSmall},
        {"2.9", "2.9.1+cu128", kSmall},
        {"2.10", "2.10.0+cu128", kSmall},
        {"2.11", "2.11.0+cu130", "every test of `onerank exec`"},
        {"2.12", "2.12.1+cu130", kSmall},
        {"2.13", "2.13.0+cu130", kSmall},
        {"2.14", "2.14.1+cu130", kSmall},
        {"2.15", "2.15.0+cu132", kSmall},
    };
    for (SupportedTorch& torch : all) torch.built_for = is_built_for(torch.wheel);
    return all;
  }();
  return kAll;
}

std::string supported_torch_words() {
  const auto& all = supported_torch();
  return fmt::format(
      "torch {} to {}, built for CUDA 12 or 13", all.front().release, all.back().release);
}

bool is_for_cuda_12(const ProgramTorch& torch) { return major_of(torch.cuda) == "12"; }

bool is_supported(const ProgramTorch& torch) {
  const std::string cuda = major_of(torch.cuda);
  if (cuda != "12" && cuda != "13") return false;
  const auto& all = supported_torch();
  return std::any_of(all.begin(), all.end(), [&](const SupportedTorch& one) {
    return one.release == release_of(torch.version);
  });
}

fs::path cuda_headers(const BuiltWith& built, const ProgramTorch& torch) {
  const bool is_12 = is_for_cuda_12(torch);
  const fs::path packages = torch.folder.parent_path() / "nvidia";
  const fs::path beside = packages / (is_12 ? "cuda_runtime" : "cu13") / "include";
  return is_12 || fs::exists(beside / kCudaHeader) ? beside : built.cuda_headers;
}

fs::path stubs_for(const ProgramTorch& torch,
                   const Environment& environment,
                   const Interrupts& interrupts) {
  if (is_built_for(torch.version)) return parts_folder();
  if (!is_supported(torch)) refuse(torch);
  const fs::path caches = user_cache_folder(environment) / "onerank";
  const BuiltWith built = built_with();
  fs::path folder = stubs_folder(caches, built, torch);
  make_private_folder(folder, caches);
  StubsBuild(torch, built, folder, environment, interrupts).run();
  return folder;
}

}  // namespace sim
