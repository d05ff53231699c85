// Options and variables as in the manual page srun(1) of Slurm 24.05.
#include "sim/cli/programs/srun.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "estimator/base/contains.h"
#include "estimator/base/errors.h"
#include "estimator/base/number_text.h"
#include "estimator/base/units.h"

namespace sim {
namespace {

using estimator::UserError;

/// No value follows these in a word of its own; the last line is of the container plugin pyxis.
constexpr std::string_view kWithoutValue[] = {"contiguous",
                                              "disable-status",
                                              "exact",
                                              "exclusive",
                                              "external-launcher",
                                              "get-user-env",
                                              "help",
                                              "hold",
                                              "immediate",
                                              "interactive",
                                              "kill-on-bad-exit",
                                              "label",
                                              "multi-prog",
                                              "nice",
                                              "no-allocate",
                                              "no-kill",
                                              "no-requeue",
                                              "overcommit",
                                              "overlap",
                                              "oversubscribe",
                                              "preserve-env",
                                              "propagate",
                                              "pty",
                                              "quiet",
                                              "quit-on-interrupt",
                                              "reboot",
                                              "requeue",
                                              "resv-ports",
                                              "spread-job",
                                              "test-only",
                                              "unbuffered",
                                              "usage",
                                              "use-min-nodes",
                                              "verbose",
                                              "version",
                                              "x11",
                                              "container-mount-home",
                                              "container-readonly",
                                              "container-remap-root",
                                              "container-writable",
                                              "no-container-entrypoint",
                                              "no-container-mount-home",
                                              "no-container-remap-root"};
constexpr std::string_view kShortWithoutValue = "EHIKOQVXZhklqsuv";

/// From 1 on, of "2" and of "2-4".
int64_t number_in(const std::string& value, const std::string& name) {
  const auto number = estimator::parse_number<int64_t>(value.substr(0, value.find('-')));
  if (number && *number > 0) return *number;
  throw UserError({.what = "an option of srun has no number from 1 on",
                   .where = fmt::format("srun --{} {}", name, value),
                   .help = "give it one, or leave out srun and give --world-size"});
}

/// Reads the words in front of the program.
class SrunOptions {
 public:
  explicit SrunOptions(const std::vector<std::string>& command) : command_(command) {
    while (next_ < command_.size() && command_[next_].starts_with('-')) {
      const std::string& word = command_[next_++];
      if (word == "--") break;
      word.starts_with("--") ? read_long(word.substr(2)) : read_short(word.substr(1));
    }
  }

  SrunCommand command() const {
    if (next_ >= command_.size()) {
      throw UserError({.what = "srun is given no program",
                       .where = fmt::format("{} words", command_.size()),
                       .help = "put the program behind the options of srun"});
    }
    return {.program = {command_.begin() + static_cast<std::ptrdiff_t>(next_), command_.end()},
            .tasks = tasks(),
            .nodes = nodes_};
  }

 private:
  std::optional<int64_t> tasks() const {
    if (tasks_) return tasks_;
    if (nodes_ && per_node_) return *nodes_ * *per_node_;
    return std::nullopt;
  }

  void read_long(const std::string& word) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    if (equals != word.npos) return take(name, word.substr(equals + 1));
    const bool is_alone = estimator::contains(kWithoutValue, name);
    if (!is_alone && next_ < command_.size()) take(name, command_[next_++]);
  }

  void read_short(const std::string& letters) {
    for (size_t i = 0; i < letters.size(); ++i) {
      if (kShortWithoutValue.find(letters[i]) != kShortWithoutValue.npos) {
        // A value of these stands behind them in the same word: "-I60".
        if (letters[i] == 'I' || letters[i] == 'K') return;
        continue;
      }
      const std::string name = letters[i] == 'n' ? "ntasks" : letters[i] == 'N' ? "nodes" : "";
      if (i + 1 < letters.size()) return take(name, letters.substr(i + 1));
      if (next_ < command_.size()) take(name, command_[next_++]);
    }
  }

  void take(const std::string& name, const std::string& value) {
    if (name == "ntasks") tasks_ = number_in(value, name);
    if (name == "nodes") nodes_ = number_in(value, name);  // of a range its smallest
    if (name == "ntasks-per-node") per_node_ = number_in(value, name);
  }

  const std::vector<std::string>& command_;
  size_t next_ = 1;
  std::optional<int64_t> tasks_;
  std::optional<int64_t> nodes_;
  std::optional<int64_t> per_node_;
};

int64_t ranks_of_node(const SlurmJob& job) { return std::min(job.gpus_per_node, job.world_size); }

int64_t nodes_of(const SlurmJob& job) {
  return job.nodes > 0 ? job.nodes : estimator::divide_up(job.world_size, ranks_of_node(job));
}

/// How large the world is, a launcher knows that is the task of its node.
int64_t task_of(const SlurmJob& job, int64_t rank) {
  if (rank < job.world_size) return rank / (job.world_size / job.tasks);
  return std::min(rank / job.gpus_per_node, job.tasks - 1);
}

}  // namespace

std::optional<SrunCommand> parse_srun(const std::vector<std::string>& command) {
  if (std::filesystem::path(command.front()).filename() != "srun") return std::nullopt;
  return SrunOptions(command).command();
}

void check_slurm_job(const SlurmJob& job) {
  if (job.tasks > 0 && job.world_size % job.tasks == 0) return;
  throw UserError({.what = "the tasks of srun do not divide the world",
                   .where = fmt::format("{} tasks, --world-size {}", job.tasks, job.world_size),
                   .help =
                       "srun starts a task for each rank, or one for each node, which starts its "
                       "ranks: give --world-size the ranks of all"});
}

void set_slurm_variables(const SlurmJob& job, int64_t rank, Environment& environment) {
  const int64_t nodes = nodes_of(job);
  const int64_t tasks_of_node = std::max<int64_t>(1, job.tasks / nodes);
  const int64_t task = task_of(job, rank);
  const int64_t node =
      std::min(job.nodes > 0 ? task / tasks_of_node : rank / ranks_of_node(job), nodes - 1);
  const auto set = [&](const char* name, const std::string& value) { environment[name] = value; };
  const auto set_number = [&](const char* name, int64_t value) {
    set(name, std::to_string(value));
  };
  const std::string host_names = nodes == 1 ? "node0" : fmt::format("node[0-{}]", nodes - 1);
  set_number("SLURM_PROCID", task);
  set_number("SLURM_LOCALID", task % tasks_of_node);
  set_number("SLURM_NODEID", node);
  for (const char* name : {"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_STEP_NUM_TASKS"}) {
    set_number(name, job.tasks);
  }
  for (const char* name : {"SLURM_NNODES", "SLURM_JOB_NUM_NODES", "SLURM_STEP_NUM_NODES"}) {
    set_number(name, nodes);
  }
  set_number("SLURM_NTASKS_PER_NODE", tasks_of_node);
  for (const char* name : {"SLURM_TASKS_PER_NODE", "SLURM_STEP_TASKS_PER_NODE"}) {
    set(name,
        nodes == 1 ? std::to_string(tasks_of_node) : fmt::format("{}(x{})", tasks_of_node, nodes));
  }
  for (const char* name : {"SLURM_NODELIST", "SLURM_JOB_NODELIST", "SLURM_STEP_NODELIST"}) {
    set(name, host_names);
  }
  set("SLURMD_NODENAME", fmt::format("node{}", node));
  set("SLURM_LAUNCH_NODE_IPADDR", "127.0.0.1");
  for (const auto& [name, value] : {std::pair("SLURM_JOB_ID", "1"),
                                    std::pair("SLURM_JOBID", "1"),
                                    std::pair("SLURM_STEP_ID", "0"),
                                    std::pair("SLURM_JOB_NAME", "onerank")}) {
    environment.emplace(name, value);
  }
}

}  // namespace sim
