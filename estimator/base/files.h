// Files are read whole and written whole or not at all.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "estimator/base/json.h"

namespace estimator {

/// What reading a file may take at most: a path may name a pipe that never ends.
struct ReadLimits {
  std::size_t bytes = std::size_t{256} << 20;
  std::chrono::milliseconds silence{30'000};  ///< in which nothing comes out of a pipe
};

/// The file's bytes. Throws UserError: bad input when it cannot be read, is a folder or a device,
/// has more bytes than `limits` allows, or is a pipe through which nothing comes.
std::string read_file(const std::string& path, const ReadLimits& limits = {});

/// Writes beside `path` and renames, so that `path` is either as before or complete, also when a
/// signal comes to end this process. A file that is replaced keeps its mode; a pipe or a device is
/// written to. Throws UserError: bad input when the path cannot be written, a lack of this machine
/// when its disk is full.
void write_file_whole(const std::string& path, std::string_view content);

/// Copies a file of any size in the same way.
void copy_file_whole(const std::string& from, const std::string& to);

/// Makes the folder, and those above it. Throws UserError (bad input) when it cannot.
void make_folder(const std::string& path);

/// Whether `error` says that a path itself is impossible (a name that is too long, a loop of
/// links), not only that there is nothing yet.
bool is_impossible_path(const std::error_code& error);

/// How many keys one object of a document may have: finding one in an ordered_json is a search.
inline constexpr std::size_t kMostKeys = 1000;

/// Parses JSON. Throws UserError with line and column; duplicate keys and NaN are errors, and so
/// are numbers that no double holds.
Json parse_json(std::string_view text, const std::string& origin);

}  // namespace estimator
