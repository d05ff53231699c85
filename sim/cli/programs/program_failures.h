// Why a user's program has no profile that counts, in words: what happened, and the way out.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/cli/process/subprocess.h"
#include "sim/cli/programs/exec_process.h"
#include "sim/cli/programs/program_processes.h"

namespace sim {

/// The command as one line.
std::string shown(const std::vector<std::string>& command);

/// For a program that was ended because it took too long. `folder` is its process_folder().
[[noreturn]] void throw_timed_out(const ExecJob& job, const std::filesystem::path& folder);

/// Nothing if `unanswered` is empty. A profile of a run that went on with a wrong answer must not
/// pass for a result. `folder` is the program's process_folder().
void throw_if_unanswered(const ExecJob& job,
                         const std::filesystem::path& folder,
                         const std::vector<std::string>& unanswered);

/// The same of all processes, also those without a profile.
void throw_if_refused(const ExecJob& job, const std::filesystem::path& folder);

/// Nothing if no recorder failed. No other process of the program stands for the one whose profile
/// is missing.
void throw_if_recorder_failed(const ExecJob& job, const ProgramProcesses& processes);

/// Nothing if the program ended well. The error tells what the program was given that may not be
/// so.
void throw_if_failed(const ExecJob& job,
                     const std::filesystem::path& folder,
                     const ProgramProcesses& processes,
                     const SubprocessEnd& end);

/// For a program that failed: nothing unless it was to be a rank of a world of which nobody told it
/// how large it is, and started none itself.
void throw_if_world_is_unknown(const ExecJob& job,
                               const WantedRank& wanted,
                               const ProgramProcesses& processes,
                               const std::filesystem::path& folder);

/// For a program that ended well, none of whose processes left a profile.
[[noreturn]] void throw_without_profile(const ExecJob& job,
                                        const WantedRank& wanted,
                                        const ProgramProcesses& processes,
                                        const std::filesystem::path& folder);

}  // namespace sim
