// The command that runs a user's program as one rank.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "sim/cli/process/environment.h"
#include "sim/cli/process/subprocess.h"
#include "sim/cli/programs/exec_process.h"

namespace sim {

/// The libraries in the job's folder exec/: the one that is preloaded, and the recorder that it
/// loads.
inline constexpr const char* kHooks = "libonerank_exec_hooks.so";
inline constexpr const char* kRecorder = "libonerank_exec_recorder.so";

/// Throws UserError (this machine lacks something) if one of them is missing. Else the dynamic
/// loader would tell it, in every process.
void check_recorder(const ExecJob& job);

/// Where the program's processes leave what they tell, in the scratch folder of a run.
std::filesystem::path process_folder(const std::filesystem::path& scratch);

/// Whether the program reads standard input: of several ranks none could have all of it.
bool has_input(const ExecJob& job);

/// The program with the environment of the rank, the preloaded libraries, the recorder's settings
/// and the virtual GPU.
SubprocessCommand program_command(const ExecJob& job,
                                  int64_t rank,
                                  const std::string& preload,
                                  const std::filesystem::path& scratch,
                                  const Environment& outer);

}  // namespace sim
