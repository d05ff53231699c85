// The names by which `onerank exec`, its recorder and its preloaded hooks find each other:
// variables of the environment, and files.
#pragma once

namespace sim {

/// Path of the recorder's library. Without it the preloaded hooks do nothing.
inline constexpr const char* kExecRecorderVariable = "ONERANK_EXEC_RECORDER";
inline constexpr const char* kExecSettingsVariable = "ONERANK_EXEC_SETTINGS";
/// The path of a folder in which every process that uses the GPU makes a folder of its own, named
/// by its process id. It is not part of the settings, because a path need not be UTF-8.
inline constexpr const char* kExecFolderVariable = "ONERANK_EXEC_FOLDER";
/// The rank that is wanted. The processes that a launcher of the program starts for other ranks end
/// at once, and leave an empty file with this prefix and their rank in that folder.
inline constexpr const char* kExecWantedRankVariable = "ONERANK_EXEC_WANTED_RANK";
inline constexpr const char* kSkippedPrefix = "skipped-";
/// In that folder: what the program asked absent ranks for in vain, a line each.
inline constexpr const char* kRefusals = "refusals";
/// Such a line has this text if it is about memory that ranks of several machines were to share.
inline constexpr const char* kOnOtherMachines = "ranks on other machines";
/// The same of messages of absent ranks in whose place it was given what it held itself.
inline constexpr const char* kTakenForOwn = "taken-for-own";
/// The same of barriers behind which nobody waited for absent ranks.
inline constexpr const char* kPassedBarriers = "passed-barriers";
/// The same of functions of NVIDIA's libraries for which the virtual GPU has no answer.
inline constexpr const char* kRefusedFunctions = "refused-functions";
/// The same of exceptions that ended its processes: "ValueError: " and the first line of its text.
inline constexpr const char* kExceptions = "exceptions";
/// A variable: the time at which the program will be ended, in seconds since 1970. Shortly before,
/// its processes write to files with this prefix, and their id, what they are doing.
inline constexpr const char* kExecDeadlineVariable = "ONERANK_EXEC_DEADLINE";
inline constexpr const char* kDoingPrefix = "doing-";
/// What a process writes there: how many optimizer steps it has taken, after the first.
inline constexpr const char* kStepsTaken = "steps";
/// What it writes in place of its profile if Onerank itself failed: the error.
inline constexpr const char* kInternalError = "internal-error";
/// The last file that a process writes there.
inline constexpr const char* kProcessProfile = "profile.json";

}  // namespace sim
