// Files are read whole and written whole or not at all.
#pragma once

#include <string>
#include <string_view>

#include "estimator/base/fields.h"

namespace estimator {

/// The file's bytes. Throws UserError (bad input) when it cannot be read.
std::string read_file(const std::string& path);

/// Writes beside `path` and renames, so that `path` is either as before or complete.
/// Throws UserError (bad input) when it cannot be written.
void write_file_whole(const std::string& path, std::string_view content);

/// How many keys one object of a document may have: finding one in an ordered_json is a search.
inline constexpr std::size_t kMostKeys = 1000;

/// Parses JSON. Throws UserError with line and column; duplicate keys and NaN are errors, and so
/// are numbers that no double holds.
Json parse_json(std::string_view text, const std::string& origin);

}  // namespace estimator
