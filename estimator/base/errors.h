// The one error type for what a user can cause, and the exit codes of both executables.
#pragma once

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

/// Thrown for what a user can put right. Carries every problem that was found, not only the first.
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

/// The text a user sees, for each problem:
///     error: WHAT
///       WHERE
///       help: HELP
std::string to_text(const std::vector<Problem>& problems);

/// The known name nearest to `name`, or "" when none is near (ninja's rule: edit distance up to 3).
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);

/// "did you mean X?", or the list of what is known when nothing is near.
std::string suggestion(std::string_view name, const std::vector<std::string>& known);

}  // namespace estimator
