// The command of a script that starts a training: its launcher, its program and its arguments.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/cli/import/key_table.h"
#include "sim/cli/import/launcher_words.h"
#include "sim/cli/import/shell/shell_script.h"
#include "sim/cli/import/source_entry.h"

namespace sim {

/// On which line of a script an argument stands.
class ArgumentLines {
 public:
  ArgumentLines(const std::string& text, std::string origin);

  /// "train.sh:12": the last line with the argument up to the command's, else the last line with it
  /// at all, or the one of its command when it is made of variables or comes from another script.
  std::string place(const std::string& key, int line_of_command) const;

 private:
  std::string origin_;
  std::map<std::string, std::vector<int>> lines_;  ///< ascending
};

struct TrainingCommand {
  std::vector<SourceEntry> entries;  ///< its arguments
  std::vector<ShellWord> launcher;   ///< the words before the program
  std::string program;               ///< "pretrain_gpt.py"; empty: there is none
  int line = 0;                      ///< of the program
  std::vector<ShellWord> bare;       ///< the words between the program and its first argument
};

/// What is said where a script has other trainings than the one that is read: those in `others`
/// lines, and other rounds of a loop around it.
std::vector<std::string> notes_on_others(const std::string& origin,
                                         const TrainingCommand& training,
                                         const std::vector<int>& others,
                                         const ShellScript& script);

/// The first word of a command's program and the number of its words, which is 0 without one.
struct ProgramWords {
  std::size_t at = 0;
  std::size_t count = 0;
};
using ProgramFinder = std::function<ProgramWords(const ShellCommand&)>;

/// The first word that is a Python file or has "pretrain_" in it.
ProgramWords python_program(const ShellCommand& command);

/// "--key value value" and "--key=value", from the word `begin` on.
std::vector<SourceEntry> entries_of_words(const std::vector<ShellWord>& words,
                                          std::size_t begin,
                                          const ArgumentLines& lines);

/// Every command of the script. Lines of arguments without a program continue each other.
std::vector<TrainingCommand> training_commands(const ShellScript& script,
                                               const ArgumentLines& lines,
                                               const ProgramFinder& find_program = python_program);

/// A script with what its lines #SBATCH set.
struct Job {
  ShellScript script;
  LaunchedCluster cluster;
};
Job read_job(const std::string& text, const std::string& origin, const ScriptInput& input);

/// Whether a launcher's words say how many machines there are, or may say it. An unknown value of
/// another key does not.
bool may_say_machines(const std::vector<ShellWord>& launcher);

/// The machines of the job, of srun and of the training's launcher.
LaunchedCluster launched_cluster(const Job& job, const TrainingCommand& training);

/// What a plan takes from the variables of a job, with normal keys (data/environment.json).
const std::vector<KeyRow>& environment_rows();
/// The variables of a job that a plan has keys for, by their own names.
const std::vector<std::string>& job_variables();
void add_job_variables(const ShellScript& script,
                       const std::string& origin,
                       std::vector<SourceEntry>& entries);

}  // namespace sim
