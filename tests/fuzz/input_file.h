// An input as a file, for readers that take a path.
#pragma once

#include <cstdint>
#include <string>

namespace fuzz {

/// Writes the input over one file of this process, whose name ends in `extension`, and returns its
/// path. The file is removed when the process ends.
const std::string& in_file(const uint8_t* data, size_t size, const std::string& extension);

}  // namespace fuzz
