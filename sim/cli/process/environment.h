// The environment variables that Onerank reads. No other file of the project looks at them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace sim {

inline constexpr const char* kRankVariable = "RANK";
inline constexpr const char* kWorldSizeVariable = "WORLD_SIZE";
/// Set by PyTorch's launchers, with RANK and WORLD_SIZE: where the ranks of a world meet.
inline constexpr const char* kMasterAddressVariable = "MASTER_ADDR";
inline constexpr const char* kMasterPortVariable = "MASTER_PORT";
/// Set by torchrun: "True" when its agent keeps the store at that place; and how often the world
/// was restarted.
inline constexpr const char* kTorchrunStoreVariable = "TORCHELASTIC_USE_AGENT_STORE";
inline constexpr const char* kTorchrunRestartsVariable = "TORCHELASTIC_RESTART_COUNT";
/// Set by Slurm's srun.
inline constexpr const char* kSlurmNodesVariable = "SLURM_STEP_NODELIST";
inline constexpr const char* kSlurmJobVariable = "SLURM_JOB_ID";
inline constexpr const char* kSlurmStepVariable = "SLURM_STEP_ID";
/// PyTorch's two names for the allocator's settings. The older one wins, as it does in torch 2.11
/// (tests/sim/virtual_gpu/torch_allocator_settings_test.cpp), whose headers say otherwise.
inline constexpr const char* kAllocatorVariable = "PYTORCH_ALLOC_CONF";
inline constexpr const char* kOldAllocatorVariable = "PYTORCH_CUDA_ALLOC_CONF";
inline constexpr const char* kCublasWorkspaceVariable = "CUBLAS_WORKSPACE_CONFIG";
/// The folder for caches of the user's programs.
inline constexpr const char* kCacheVariable = "XDG_CACHE_HOME";
inline constexpr const char* kHomeVariable = "HOME";
inline constexpr const char* kPreloadVariable = "LD_PRELOAD";
/// The torch with which ranks of a plan run: the folder that has lib/ and include/.
inline constexpr const char* kTorchVariable = "ONERANK_TORCH_DIR";
inline constexpr const char* kLibraryPathVariable = "LD_LIBRARY_PATH";
/// Whether output has colours: no-color.org, bixense.com/clicolors, and the kind of terminal.
inline constexpr const char* kNoColourVariable = "NO_COLOR";
inline constexpr const char* kForceColourVariable = "CLICOLOR_FORCE";
inline constexpr const char* kTerminalVariable = "TERM";
/// For tests: a file that is read in place of those that show NVIDIA's driver.
inline constexpr const char* kDriverFileVariable = "ONERANK_DRIVER_FILE";
/// For tests: the program to start in place of onerank-rank.
inline constexpr const char* kRankProcessVariable = "ONERANK_RANK_PROCESS";

/// A copy of the environment variables, by name. Programs are started with such a copy.
using Environment = std::map<std::string, std::string>;

Environment current_environment();

/// Throws UserError that names `source` unless `text` is UTF-8: arguments and variables enter
/// documents, which cannot hold anything else.
void require_utf8(std::string_view text, const std::string& source);

/// The variable's value. A variable with an empty value counts as not set. Throws UserError when
/// the value is not UTF-8.
std::optional<std::string> find_variable(const Environment& environment, const std::string& name);

/// Puts `paths` before the paths in the variable `name`, separated by a colon.
void put_first(const std::string& paths, const std::string& name, Environment& environment);

}  // namespace sim
