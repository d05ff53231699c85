#include "sim/cli/import/training_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "estimator/base/database.h"
#include "sim/cli/import/key_table.h"

namespace onerank_data {
extern const std::string_view import_environment_json;
}

namespace sim {
namespace {

/// Lines of arguments without a program continue each other.
std::vector<ShellCommand> with_bare_lines_joined(std::vector<ShellCommand> commands) {
  std::vector<ShellCommand> joined;
  for (ShellCommand& command : commands) {
    const bool continues = !joined.empty() && command.words.front().text.starts_with("--");
    if (!continues) {
      joined.push_back(std::move(command));
      continue;
    }
    std::vector<ShellWord>& words = joined.back().words;
    words.insert(words.end(), command.words.begin(), command.words.end());
  }
  return joined;
}

TrainingCommand training_of(const ShellCommand& command,
                            const ArgumentLines& lines,
                            const ProgramFinder& find_program) {
  const std::vector<ShellWord>& words = command.words;
  const ProgramWords program = find_program(command);
  TrainingCommand training;
  if (program.count == 0) {
    training.launcher = words;
    training.line = words.front().line;
    training.entries = entries_of_words(words, 0, lines);
    return training;
  }
  const auto begin = words.begin() + static_cast<std::ptrdiff_t>(program.at);
  const auto end = begin + static_cast<std::ptrdiff_t>(program.count);
  training.launcher.assign(words.begin(), begin);
  training.line = begin->line;
  for (auto word = begin; word != end; ++word) {
    training.program += (word == begin ? "" : " ") + word->text;
  }
  const auto is_argument = [](const ShellWord& word) { return word.text.starts_with("--"); };
  training.bare.assign(end, std::find_if(end, words.end(), is_argument));
  training.entries = entries_of_words(words, program.at + program.count, lines);
  return training;
}

/// As `sbatch job.sh`, `srun python train.py`: what stands before the program.
std::vector<ShellWord> words_before_program(const ShellCommand& command) {
  const ProgramWords program = python_program(command);
  const std::size_t count = program.count == 0 ? command.words.size() : program.at;
  return {command.words.begin(), command.words.begin() + static_cast<std::ptrdiff_t>(count)};
}

bool starts_ranks_itself(const std::vector<ShellWord>& launcher) {
  return std::any_of(launcher.begin(), launcher.end(), [](const ShellWord& word) {
    return word.text.ends_with("torchrun") || word.text.starts_with("torch.distributed");
  });
}

/// Whether a launcher's words say how many ranks it starts on a machine, or may say it.
bool may_say_ranks(const std::vector<ShellWord>& launcher) {
  return std::any_of(launcher.begin(), launcher.end(), [](const ShellWord& word) {
    return word.is_unknown ||
           normal_key(word.text.substr(0, word.text.find('='))) == "nproc-per-node";
  });
}

SourceEntry open_entry(const ShellWord& word, std::string place) {
  return {.key = word.text,
          .values = {},
          .place = std::move(place),
          .is_unknown = true,
          .may_be_arguments = true};
}

/// What a variable stands for that nobody sets may be nothing at all, and then the value before it
/// is the whole one.
void add_value(const ShellWord& word, SourceEntry& entry) {
  const bool may_be_nothing = word.is_open || (word.is_unknown && word.text.starts_with('$'));
  if (word.is_open) entry.open.push_back(word.text);
  if (may_be_nothing && !entry.values.empty()) return;
  entry.is_unknown = entry.is_unknown || word.is_unknown;
  if (!word.is_unknown || entry.values.empty()) entry.values.push_back(word.text);
}

}  // namespace

ArgumentLines::ArgumentLines(const std::string& text, std::string origin)
    : origin_(std::move(origin)) {
  int line = 1;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\n') ++line;
    const bool begins = text.compare(at, 2, "--") == 0 &&
                        (at == 0 || std::string_view(" \t\n\"'(").find(text[at - 1]) != text.npos);
    if (!begins) continue;
    const std::size_t end = text.find_first_of(" \t\r\n=\"')\\", at);
    lines_[normal_key(text.substr(at, end - at))].push_back(line);
    at += 2;
  }
}

std::string ArgumentLines::place(const std::string& key, int line_of_command) const {
  const auto found = lines_.find(key);
  if (found == lines_.end()) return fmt::format("{}:{}", origin_, line_of_command);
  const std::vector<int>& lines = found->second;
  const auto behind = std::upper_bound(lines.begin(), lines.end(), line_of_command);
  return fmt::format("{}:{}", origin_, behind == lines.begin() ? lines.back() : *(behind - 1));
}

std::vector<std::string> notes_on_others(const std::string& origin,
                                         const TrainingCommand& training,
                                         const std::vector<int>& others,
                                         const ShellScript& script) {
  std::vector<std::string> notes;
  if (!others.empty()) {
    notes.push_back(
        fmt::format("{} has {} more training{}, in line{} {}; this is the one of line {}",
                    origin,
                    others.size(),
                    others.size() == 1 ? "" : "s",
                    others.size() == 1 ? "" : "s",
                    fmt::join(others, ", "),
                    training.line));
  }
  for (const ShellLoop& loop : script.loops) {
    if (training.line < loop.first_line || training.line > loop.last_line) continue;
    notes.push_back(fmt::format("{}:{}: of a loop the first round is read, with {} = {}",
                                origin,
                                loop.first_line,
                                loop.variable,
                                loop.first));
  }
  return notes;
}

bool may_say_machines(const std::vector<ShellWord>& launcher) {
  bool is_value = false;
  for (const ShellWord& word : launcher) {
    const bool is_key = word.text.starts_with('-');
    const std::size_t equals = word.text.find('=');
    if (is_key && says_machines(word.text.substr(0, equals))) return true;
    if (!is_key && word.is_unknown && (!is_value || word.holds_arguments)) return true;
    is_value = is_key && equals == word.text.npos;
  }
  return false;
}

ProgramWords python_program(const ShellCommand& command) {
  const auto found =
      std::find_if(command.words.begin(), command.words.end(), [](const ShellWord& word) {
        return word.text.ends_with(".py") || word.text.find("pretrain_") != word.text.npos;
      });
  if (found == command.words.end()) return {};
  return {.at = static_cast<std::size_t>(found - command.words.begin()), .count = 1};
}

std::vector<SourceEntry> entries_of_words(const std::vector<ShellWord>& words,
                                          std::size_t begin,
                                          const ArgumentLines& lines) {
  std::vector<SourceEntry> entries;
  for (std::size_t i = begin; i < words.size(); ++i) {
    const ShellWord& word = words[i];
    if (word.text.starts_with("--") && word.text.size() > 2) {
      const std::size_t blank = word.text.find(' ');
      const std::size_t equals = std::min(word.text.find('='), blank);
      SourceEntry entry = {
          .key = normal_key(word.text.substr(0, equals)), .values = {}, .place = ""};
      entry.place = lines.place(entry.key, word.line);
      entry.as_written = word.text.substr(0, equals);
      if (equals != word.text.npos) {
        entry.values.push_back(word.text.substr(equals + 1));
        entry.is_unknown = word.is_unknown;
      }
      entries.push_back(std::move(entry));
    } else if (word.holds_arguments || (entries.empty() && word.is_open)) {
      entries.push_back(open_entry(word, lines.place(word.text, word.line)));
    } else if (!entries.empty() && !word.text.empty()) {
      add_value(word, entries.back());
    }
  }
  return entries;
}

std::vector<TrainingCommand> training_commands(const ShellScript& script,
                                               const ArgumentLines& lines,
                                               const ProgramFinder& find_program) {
  std::vector<TrainingCommand> trainings;
  for (const ShellCommand& command : with_bare_lines_joined(script.commands)) {
    trainings.push_back(training_of(command, lines, find_program));
  }
  return trainings;
}

Job read_job(const std::string& text, const std::string& origin, const ScriptInput& input) {
  ShellStart start{.environment = {}, .arguments = input.arguments};
  Job job{.script = read_shell_script(text, origin, input.find_script, start), .cluster = {}};
  if (job.script.directives.empty()) return job;
  read_launcher_words(job.script.directives, job.cluster);
  start.environment = slurm_variables(job.cluster);
  job.script = read_shell_script(text, origin, input.find_script, start);
  return job;
}

LaunchedCluster launched_cluster(const Job& job, const TrainingCommand& training) {
  LaunchedCluster cluster = job.cluster;
  for (const ShellCommand& command : job.script.commands) {
    const std::string& name = command.words.front().text;
    if (name == "srun" || name == "sbatch") {
      read_launcher_words(words_before_program(command), cluster);
    }
  }
  read_launcher_words(training.launcher, cluster);
  if (!starts_ranks_itself(training.launcher)) return cluster;
  cluster.tasks_start_ranks = true;
  if (!cluster.nodes && !may_say_machines(training.launcher)) cluster.nodes = 1;
  cluster.is_one_rank_by_default = !may_say_ranks(training.launcher);
  if (cluster.is_one_rank_by_default) cluster.gpus_per_node = 1;
  return cluster;
}

const std::vector<KeyRow>& environment_rows() {
  static const auto rows = read_key_rows(onerank_data::import_environment_json, "environment.json");
  return rows;
}

const std::vector<std::string>& job_variables() {
  static const auto names = [] {
    std::vector<std::string> all;
    for (const KeyRow& row : estimator::read_database<KeyRow>(onerank_data::import_environment_json,
                                                              "environment.json")) {
      all.insert(all.end(), row.keys.begin(), row.keys.end());
    }
    return all;
  }();
  return names;
}

void add_job_variables(const ShellScript& script,
                       const std::string& origin,
                       std::vector<SourceEntry>& entries) {
  for (const std::string& name : job_variables()) {
    const auto found = script.variables.find(name);
    if (found == script.variables.end() || found->second.empty()) continue;
    const ShellWord& value = found->second.front();
    if (value.is_unknown) continue;
    entries.push_back({.key = normal_key(name),
                       .values = {value.text},
                       .place = fmt::format("{}:{}", origin, value.line)});
  }
}

}  // namespace sim
