// What a program was given in place of what absent ranks would have said: a collective was answered
// as if they held what this rank holds, and at a barrier nobody was waited for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "estimator/profile/program_record.h"

namespace sim {

struct AbsentAnswer {
  std::string kind;     ///< as in estimator::CollectiveKind
  std::string group;    ///< its description, for the user
  int64_t members = 1;  ///< of the group
  std::string why;      ///< "rank 0 was not run"
};

/// Why of a sum or an exchange, for which nobody is asked.
inline constexpr const char* kTakenAsEqual = "all members are taken to hold the same";

/// "14 of 16 ranks were not run"
std::string why_not_run(int64_t absent, int64_t members);

/// Counts it, with the line of Python that this thread is running. Should the program fail, that
/// may be why: of what is no sum the folder of the program's processes has a line too
/// (kTakenForOwn, kPassedBarriers). Thread-safe.
void note_absent_answer(const AbsentAnswer& answer);

/// All that this process has noted. Thread-safe.
std::vector<estimator::AbsentAnswerRecord> absent_answers();

}  // namespace sim
