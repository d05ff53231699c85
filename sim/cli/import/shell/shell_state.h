// The variables of a shell, the arguments of its functions, and what is not decided about them.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cli/import/shell/shell_expansion.h"

namespace sim {

/// A copy of it is the state of a subshell.
class ShellState {
 public:
  ShellVariables& variables() { return variables_; }
  /// Of the texts of one variable, and of all together, for those who count what is copied.
  std::size_t bytes(const std::string& name) const;
  std::size_t bytes() const;
  int line(const std::string& name) const;  ///< where the variable has its value

  void set(const std::string& name, std::vector<std::string> items, int line);
  void unset(const std::string& name);
  /// A shell may assign it here, `raw` as the script has it.
  void may_set(const std::string& name, std::string_view raw = {});
  /// Nothing is known about its value from here on.
  void set_undecided(const std::string& name);

  /// $1 and so on, $@ and $#.
  void set_arguments(const std::vector<std::string>& arguments);
  void shift(std::size_t count);

  /// A function has arguments and local variables of its own until end_call().
  void begin_call(const std::vector<std::string>& arguments);
  void end_call();
  bool is_in_call() const { return !calls_.empty(); }
  void make_local(const std::string& name);

  /// From here on it is noted which variables are assigned. Returns the names so far, which belong
  /// to end_guess().
  std::set<std::string> begin_guess();
  /// `is_undecided`: nobody knows whether a shell runs what ran since begin_guess(), so that the
  /// variables which it assigned are not known.
  void end_guess(std::set<std::string> before, bool is_undecided);

 private:
  struct Call {
    ShellVariables outer_arguments;
    std::map<std::string, std::optional<std::vector<std::string>>> outer;  ///< of local variables
  };
  void note_assigned(const std::string& name);
  ShellVariables take_arguments();

  ShellVariables variables_;
  std::map<std::string, int> lines_;
  std::vector<Call> calls_;
  std::set<std::string> assigned_;
  std::set<std::string> with_arguments_;  ///< one of whose values has been `--key ...`
};

}  // namespace sim
