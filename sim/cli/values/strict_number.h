// Numbers as people type them, read strictly: "8x", "nan", "1e3.5", " 8" and "" are errors.
#pragma once

#include <cstdint>
#include <string>

namespace sim {

/// A whole number, which may be written as 15e12, 15T, 4M, 8k (8,192) or 8,192. Throws UserError
/// that names `source` (a flag or a variable).
int64_t parse_whole_number(const std::string& text, const std::string& source);

/// A whole number from 1 on.
int64_t parse_positive_number(const std::string& text, const std::string& source);

/// A finite number. Throws UserError that names `source`.
double parse_real_number(const std::string& text, const std::string& source);

}  // namespace sim
