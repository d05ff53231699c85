// Follows a shell script as a shell would, without starting anything: see read_shell_script().
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cli/import/shell/shell_expansion.h"
#include "sim/cli/import/shell/shell_script.h"
#include "sim/cli/import/shell/shell_state.h"
#include "sim/cli/import/shell/shell_test.h"
#include "sim/cli/import/shell/shell_tokens.h"

namespace sim {

/// How a command ended. A program that is started is taken to succeed, but for `if`.
enum class ShellStatus { kUnknown, kStarted, kTrue, kFalse };

/// What becomes of commands: nothing; only their variables are noted, as a shell perhaps runs them;
/// they run as the more likely branch, which does not end the script; they run.
enum class ShellMode { kSkip, kNote, kGuess, kRun };

using ShellTokens = std::vector<ShellToken>;

/// Its control flow is in shell_control.cpp, and its simple commands are in shell_command.cpp.
class ShellInterpreter {
 public:
  ShellInterpreter(std::string origin, const ScriptFinder& find_script)
      : origin_(std::move(origin)),
        find_script_(find_script),
        expansion_(state_.variables(), origin_) {}

  void run_text(std::string_view text, int line, ShellMode mode = ShellMode::kRun);

  void start(const ShellStart& start);
  void set_variable(const std::string& name, std::vector<std::string> items, int line);

  ShellScript result() &&;

 private:
  // Lists of commands, and control flow.

  /// How the next command of a list depends on those before it.
  struct Link {
    std::string_view sign;  ///< &&, || or neither
    ShellStatus before = ShellStatus::kStarted;

    ShellMode mode(ShellMode outer) const {
      const bool is_and = sign == "&&";
      if (sign.empty()) return outer;
      if (before == ShellStatus::kUnknown)
        return std::min(outer, is_and ? ShellMode::kGuess : ShellMode::kNote);
      return is_and == (before != ShellStatus::kFalse) ? outer : ShellMode::kSkip;
    }
    bool is_undecided() const { return !sign.empty() && before == ShellStatus::kUnknown; }
    /// Of the whole so far, when the command that was not decided ended.
    ShellStatus joined(ShellStatus ended) const {
      const ShellStatus decides = sign == "&&" ? ShellStatus::kFalse : ShellStatus::kTrue;
      return ended == decides ? decides : ShellStatus::kUnknown;
    }
  };

  /// Runs what `run` does. Where it is not decided whether a shell does it, no value of a variable
  /// that it assigns is known after it.
  template <class Run>
  ShellStatus guess(bool is_undecided, const Run& run) {
    std::set<std::string> before = state_.begin_guess();
    const ShellStatus status = run();
    state_.end_guess(std::move(before), is_undecided);
    return status;
  }

  void count_step();
  void enter_list();
  static bool at_word(const ShellTokens& tokens, std::size_t at, std::string_view text);
  static bool at_operator(const ShellTokens& tokens, std::size_t at, std::string_view text);
  static bool separates(const ShellToken& token);
  static bool runs(ShellMode mode);
  void skip_to_end(const ShellTokens& tokens, std::size_t& at, std::string_view end);
  bool closes_list(const ShellToken& token, const std::set<std::string_view>& ends) const;
  /// Runs commands up to one of the words or operators in `ends`, which is not taken.
  ShellStatus run_list(const ShellTokens& tokens,
                       std::size_t& at,
                       const std::set<std::string_view>& ends,
                       ShellMode mode);
  ShellStatus run_command(const ShellTokens& tokens, std::size_t& at, ShellMode mode);
  /// Without a comment at the end of the line.
  static std::string_view comment_cut(std::string_view text);
  ShellStatus run_denied(const ShellTokens& tokens, std::size_t& at, ShellMode mode);
  ShellStatus run_braces(const ShellTokens& tokens, std::size_t& at, ShellMode mode);
  /// Its variables are its own, and it ends alone.
  ShellStatus run_subshell(const ShellTokens& tokens, std::size_t& at, ShellMode mode);
  /// The branch of a condition that is not decided is not run, but its variables are noted; the
  /// branch after it is the more likely one.
  ShellStatus run_if(const ShellTokens& tokens, std::size_t& at, ShellMode mode);
  /// Runs for the first item alone: a script that trains once for each trains with the first first.
  ShellStatus run_for(const ShellTokens& tokens, std::size_t& at, ShellMode mode);
  /// Reads arguments or waits for something, as a rule: not run. Without arguments nothing is read.
  ShellStatus run_while(const ShellTokens& tokens, std::size_t& at, ShellMode mode);
  /// How often a loop runs is not known, and neither is what it makes of its variables.
  ShellStatus run_loop_body(const ShellTokens& tokens, std::size_t& at, ShellMode mode);
  /// Of a value that is not decided, the branch of all others is the more likely one.
  ShellStatus run_case(const ShellTokens& tokens, std::size_t& at, ShellMode mode);
  /// Whether one of the patterns up to the bracket matches.
  std::optional<bool> read_case_patterns(const ShellTokens& tokens,
                                         std::size_t& at,
                                         const std::string& value);
  static bool is_function(const ShellTokens& tokens, std::size_t at);
  ShellStatus read_function(const ShellTokens& tokens, std::size_t& at);
  ShellStatus call_function(const ShellTokens& body,
                            const std::vector<std::string>& arguments,
                            ShellMode mode);

  // Simple commands.

  ShellStatus run_simple(const ShellTokens& tokens, std::size_t& at, ShellMode mode);
  /// Behind the command from `begin` to `end`, if that is a program that runs it as a script.
  void run_heredoc(const ShellTokens& tokens, std::size_t begin, std::size_t end);
  ShellStatus execute(const ShellTokens& tokens, ShellMode mode);
  bool assign(const ShellToken& token, ShellMode mode);
  std::vector<std::string> assigned_items(const ShellToken& token,
                                          const std::string& name,
                                          bool adds,
                                          std::string_view value);
  /// The variables of a function are its own.
  ShellStatus declare(const ShellTokens& tokens, std::size_t at, ShellMode mode);
  /// (( ... )): holds if the sum is not 0. What nobody sets is 0 in it, but is asked for where it
  /// becomes the value of a variable.
  ShellStatus run_sum(std::string_view raw, int line, ShellMode mode);
  ShellStatus run_let(const ShellTokens& tokens, std::size_t at, ShellMode mode);
  TestSubject test_subject();
  /// What stands in [ ... ].
  ShellStatus test(const ShellTokens& tokens, std::size_t at);
  ShellStatus run_program(ShellCommand command,
                          const std::vector<std::string>& words,
                          ShellMode mode);
  /// set -- WORDS, and shift.
  ShellStatus change_arguments(const std::vector<std::string>& words, ShellMode mode);
  /// unset NAMES, and read NAMES, whose values are not known.
  ShellStatus change_variables(const std::vector<std::string>& words, ShellMode mode);
  /// `bash -c "..."`, `sbatch job.sh` and `srun bash job.sh` run the other script.
  bool runs_another_script(const ShellCommand& command);
  bool run_file(const ShellWord& word, ShellMode mode = ShellMode::kRun);
  /// Words that are no longer marked keep what the shell alone knows as "$(...)" or "${...}".
  static std::string marked_of(const ShellWord& word);
  static void add_words(const ShellToken& token,
                        const std::vector<std::string>& texts,
                        std::vector<ShellWord>& words);
  /// Divides the text at its blanks.
  static void add_words(const ShellToken& token,
                        const std::string& text,
                        std::vector<ShellWord>& words);

  std::string origin_;
  const ScriptFinder& find_script_;
  ShellState state_;
  std::map<std::string, std::shared_ptr<const ShellTokens>> functions_;
  ShellExpansion expansion_;
  ShellScript script_;
  bool stopped_ = false;
  int depth_ = 0;
  int list_depth_ = 0;
  int steps_ = 0;
};

}  // namespace sim
