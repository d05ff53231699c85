// The error type for all mistakes that a user can make, and the exit codes of both executables.
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

/// One thing that is wrong: what it is, where it is (the flag, key or variable, with its values),
/// and how to put it right.
struct Problem {
  std::string what;
  std::string where;
  std::string help;
};

/// A message shows at most so many problems, and at most so many bytes of each line.
inline constexpr std::size_t kMostProblemsShown = 20;
inline constexpr std::size_t kLongestShown = 2000;

/// The first kMostProblemsShown problems and, if there are more, one last problem that says how
/// many more. `left_out` is a number of further problems that are not in the list.
std::vector<Problem> and_more(std::vector<Problem> problems, int64_t left_out = 0);

/// Thrown for mistakes that a user can put right. It carries every problem that was found, not only
/// the first; and_more() shortens a long list.
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

/// For a process that a signal ended: "WHO was killed by signal 9 (Killed)". This machine lacks
/// something.
UserError killed_error(std::string_view who,
                       int signal_number,
                       std::string where,
                       std::string help);

/// The help for it: SIGKILL is what a machine without memory sends, so that the help is to use
/// less, as `uses_less` says; for other signals it is `otherwise`.
std::string help_for_killed(int signal_number,
                            std::string_view uses_less,
                            std::string_view otherwise);

/// The text that a user sees for each problem. It is safe for a terminal (see printable()), and
/// long lines are cut:
///     error: WHAT
///       WHERE
///       help: HELP
std::string to_text(const std::vector<Problem>& problems);

/// The known name that `name` was probably meant to be, or "" when there is none. It may differ by
/// one edit in names of up to 4 letters, by 2 in up to 8, and by 3 in longer ones; capitals and
/// leading dashes do not count. If no name is so near, it is the first known name that contains
/// `name` ("70b"), or else the longest known name that `name` contains as a word.
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);

/// The help for an unknown name. If `name` is a word of the field that Onerank does not have
/// (find_field_word()), it says what to use instead; else it asks "did you mean X?" if a known name
/// is near; else it is `otherwise`, which by default lists the known names. No name is near to an
/// empty one.
std::string suggestion(std::string_view name,
                       const std::vector<std::string>& known,
                       std::string_view otherwise = {});

}  // namespace estimator
