// The one error type for what a user can cause, and the exit codes of both executables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace estimator {

enum class ExitCode : int {
  kDone = 0,           ///< done; the plan fits
  kVerdictIsNo = 1,    ///< the plan does not fit
  kBadInput = 2,       ///< a flag, a plan, a variable or a file is wrong
  kMachineLacks = 3,   ///< this machine lacks something: torch, a GPU, a writable disk
  kDifference = 4,     ///< a verification found a difference
  kInternal = 70,      ///< a bug in Onerank
  kInterrupted = 130,  ///< SIGINT
};

/// One thing that is wrong: what, where (flag, key or variable, with the values), the way out.
struct Problem {
  std::string what;
  std::string where;
  std::string help;
};

/// How many problems a message shows, and how many bytes of each of their lines.
inline constexpr std::size_t kMostProblemsShown = 20;
inline constexpr std::size_t kLongestShown = 2000;

/// The first problems, and where there are more, one that tells how many. `left_out`: problems
/// beyond those in the list.
std::vector<Problem> and_more(std::vector<Problem> problems, int64_t left_out = 0);

/// Thrown for what a user can put right. Carries every problem that was found (of many the first,
/// see and_more()), not only one.
class UserError : public std::runtime_error {
 public:
  explicit UserError(Problem problem, ExitCode exit_code = ExitCode::kBadInput);
  explicit UserError(std::vector<Problem> problems, ExitCode exit_code = ExitCode::kBadInput);

  const std::vector<Problem>& problems() const { return problems_; }
  ExitCode exit_code() const { return exit_code_; }

 private:
  std::vector<Problem> problems_;
  ExitCode exit_code_;
};

/// The text a user sees, fit for a terminal (printable()), for each problem, long lines cut:
///     error: WHAT
///       WHERE
///       help: HELP
std::string to_text(const std::vector<Problem>& problems);

/// The known name that `name` is a slip of, or "" when there is none: one edit away for names of up
/// to 4 letters, 2 for up to 8, 3 for longer ones (capitals and leading dashes count as none); or
/// else the first known name that contains it ("70b"), or the longest that it contains as a word.
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);

/// The help for an unknown name: what there is instead of a word that the field knows
/// (find_field_word()), or "did you mean X?", or else `otherwise`, which by default lists what is
/// known. An empty name is near to nothing.
std::string suggestion(std::string_view name,
                       const std::vector<std::string>& known,
                       std::string_view otherwise = {});

}  // namespace estimator
