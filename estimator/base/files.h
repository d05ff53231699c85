// Reads and writes files, always as a whole: a file is never half written.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "estimator/base/json.h"

namespace estimator {

/// Limits for reading a file. They are needed because a path may name a pipe that never ends.
struct ReadLimits {
  std::size_t bytes = std::size_t{256} << 20;
  std::chrono::milliseconds silence{30'000};  ///< longest wait for the next bytes of a pipe
};

/// The file's bytes. Throws UserError (bad input) when the file cannot be read, is a folder or a
/// device, has more bytes than `limits` allows, or is a pipe that stays silent for too long.
std::string read_file(const std::string& path, const ReadLimits& limits = {});

/// Writes a temporary file beside `path` and renames it, so that `path` is either unchanged or
/// complete, even if a signal ends this process. A replaced file keeps its mode; a pipe or a device
/// is written to directly. Throws UserError: bad input when the path cannot be written, and "this
/// machine lacks something" when the disk is full.
void write_file_whole(const std::string& path, std::string_view content);

/// Copies a file of any size in the same way.
void copy_file_whole(const std::string& from, const std::string& to);

/// Makes the folder and its missing parents. Throws UserError (bad input) when that fails.
void make_folder(const std::string& path);

/// Whether `error` says that the path itself is impossible (a name that is too long, a loop of
/// symbolic links), and not only that nothing exists there yet.
bool is_impossible_path(const std::error_code& error);

/// The most keys that one object of a document may have. There is a limit because ordered_json
/// finds a key by a linear search.
inline constexpr std::size_t kMostKeys = 1000;

/// Parses JSON, in which comments and commas before a closing bracket may stand, as people write
/// them. Throws UserError with line and column. Duplicate keys, NaN, and numbers that do not fit
/// into a double are errors.
Json parse_json(std::string_view text, const std::string& origin);

}  // namespace estimator
