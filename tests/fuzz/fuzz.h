// What the fuzz targets share.
//
// A target is one function, LLVMFuzzerTestOneInput: it gives an input to one reader of the project
// and uses what the reader accepts. An input must end in acceptance or in UserError; every other
// end is a finding. Targets run under libFuzzer, and without it under the driver in driver.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "estimator/base/fields.h"

namespace fuzz {

/// Ends the process with the reason on standard error: a finding.
[[noreturn]] void fail(const std::string& what);

/// Thrown by a target whose reader refuses without an exception.
struct Refused {};

/// Calls `use`, which reads an input and uses what it holds. UserError is a refusal and is looked
/// at; any other exception is a finding. Returns 0, as LLVMFuzzerTestOneInput does.
int read_and_use(const std::function<void()>& use);

/// How many inputs were not refused until now: where there are none, only refusals were tested.
int64_t accepted_inputs();

/// What the last refusal said, "" where it was Refused.
const std::string& last_refusal();

inline std::string_view as_text(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Fails unless `document`, written and parsed again, is the same.
void expect_written_whole(const estimator::Json& document, const std::string& name);

/// Fails for a null or a number that is not finite, and for a negative number under any key but
/// those whose numbers have a sign. What stands below the key "plan" came from the input.
void expect_sound_numbers(const estimator::Json& document, const std::string& name);

/// Fails for numbers that are none: "nan", "inf".
void expect_sound_text(std::string_view text, const std::string& name);

/// Fails for what a terminal obeys instead of showing.
void expect_printable(std::string_view text, const std::string& name);

}  // namespace fuzz
