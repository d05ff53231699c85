#include "sim/cli/import/launcher_words.h"

#include <algorithm>
#include <array>

#include "estimator/base/contains.h"
#include "estimator/base/enum_names.h"
#include "estimator/base/fields.h"
#include "estimator/base/number_text.h"
#include "estimator/base/text.h"
#include "sim/cli/import/key_table.h"

namespace onerank_data {
extern const std::string_view import_launchers_json;
}

namespace sim {
namespace {

using estimator::Json;

std::optional<int64_t> number_in(const std::string& text) {
  const auto number = estimator::parse_number<int64_t>(text);
  return number && *number >= 1 ? number : std::nullopt;
}

/// "gpu:8", "gpu:h100:8", "h100:8" or "8".
void read_gpus(const std::string& text, std::optional<int64_t>& gpus, std::string& gpu) {
  for (const std::string& part : estimator::split(text, ':')) {
    if (const auto number = number_in(part)) {
      gpus = number;
    } else if (part != "gpu" && !part.empty() && part.find('$') == part.npos) {
      gpu = part;
    }
  }
}

/// What a launcher's key says: launchers.json has the names.
enum class Meaning { kNodes, kGpusOfNode, kRanksOfNode, kTasksOfNode, kGpus, kTasks };
constexpr std::array<estimator::EnumName<Meaning>, 6> enum_names(Meaning) {
  return {{{Meaning::kNodes, "nodes"},
           {Meaning::kGpusOfNode, "gpus of a node"},
           {Meaning::kRanksOfNode, "ranks of a node"},
           {Meaning::kTasksOfNode, "tasks of a node"},
           {Meaning::kGpus, "gpus"},
           {Meaning::kTasks, "tasks"}}};
}

const std::vector<KeyRow>& launcher_rows() {
  static const auto rows = read_key_rows(onerank_data::import_launchers_json, "launchers.json");
  return rows;
}

/// Whether the row is for this launcher alone; "" for one that no row names.
bool is_for(const KeyRow& row, const std::string& launcher) {
  return std::any_of(row.when.begin(), row.when.end(), [&](const KeyCondition& condition) {
    return estimator::contains(condition.values, launcher);
  });
}

/// "mpirun" of "/usr/bin/mpirun", if a row is for it alone; else "".
std::string launcher_named(const std::string& word) {
  const std::string name = word.substr(word.rfind('/') + 1);
  const auto& rows = launcher_rows();
  const bool is_named =
      std::any_of(rows.begin(), rows.end(), [&](const KeyRow& row) { return is_for(row, name); });
  return is_named ? name : "";
}

std::optional<Meaning> meaning_of(const std::string& key, const std::string& launcher) {
  for (const KeyRow& row : launcher_rows()) {
    const bool holds = row.when.empty() || is_for(row, launcher);
    if (holds && estimator::contains(row.keys, key)) {
      return estimator::value_named<Meaning>(row.constant);
    }
  }
  return std::nullopt;
}

void read_value(const std::string& key,
                const std::string& value,
                const std::string& launcher,
                LaunchedCluster& cluster) {
  const std::optional<Meaning> meaning = meaning_of(key, launcher);
  if (!meaning) return;
  switch (*meaning) {
    case Meaning::kNodes:
      if (const auto nodes = number_in(value.substr(value.find(':') + 1))) cluster.nodes = nodes;
      break;
    case Meaning::kGpusOfNode:
      read_gpus(value, cluster.gpus_per_node, cluster.gpu);
      break;
    case Meaning::kRanksOfNode:
      cluster.tasks_start_ranks = true;
      if (const auto ranks = number_in(value)) cluster.gpus_per_node = ranks;
      break;
    case Meaning::kTasksOfNode:
      cluster.tasks_per_node = number_in(value);
      break;
    case Meaning::kTasks:
      cluster.tasks = number_in(value);
      break;
    case Meaning::kGpus:
      read_gpus(value, cluster.gpus, cluster.gpu);
      break;
  }
}

}  // namespace

bool says_machines(const std::string& key) {
  return meaning_of(normal_key(key), "") == Meaning::kNodes;
}

bool starts_with_accelerate(const std::vector<ShellWord>& launcher) {
  return std::any_of(launcher.begin(), launcher.end(), [](const ShellWord& word) {
    return word.text.ends_with("accelerate") || word.text.starts_with("accelerate.commands");
  });
}

void read_launcher_words(const std::vector<ShellWord>& words, LaunchedCluster& cluster) {
  std::string launcher;
  const auto read = [&](const std::string& key, const std::string& value) {
    read_value(key, value, launcher, cluster);
  };
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i].text;
    if (const std::string name = launcher_named(word); !name.empty()) launcher = name;
    if (word.size() < 2 || word[0] != '-') continue;
    const std::size_t equals = word.find('=');
    const bool is_short = word[1] != '-';
    if (is_short && word.size() > 2 && equals == word.npos) {
      read(word.substr(1, 1), word.substr(2));  // -N4
    }
    const std::string key = normal_key(word.substr(0, equals));
    if (equals != word.npos) {
      read(key, word.substr(equals + 1));
    } else if (i + 1 < words.size()) {
      read(key, words[i + 1].text);
    }
  }
}

std::map<std::string, std::string> slurm_variables(const LaunchedCluster& cluster) {
  std::map<std::string, std::string> variables;
  if (cluster.nodes) {
    for (const char* name : {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"}) {
      variables[name] = std::to_string(*cluster.nodes);
    }
  }
  if (cluster.gpus_per_node) {
    for (const char* name : {"SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE"}) {
      variables[name] = std::to_string(*cluster.gpus_per_node);
    }
  }
  const std::optional<int64_t> tasks_per_node =
      cluster.tasks_per_node ? cluster.tasks_per_node : cluster.gpus_per_node;
  if (tasks_per_node) {
    variables["SLURM_NTASKS_PER_NODE"] = std::to_string(*tasks_per_node);
    if (cluster.nodes) {
      variables["SLURM_NTASKS"] = std::to_string(*cluster.nodes * *tasks_per_node);
    }
  }
  return variables;
}

void set_cluster(const LaunchedCluster& cluster, ImportedPlan& plan) {
  if (!cluster.gpu.empty()) set_key(plan, "cluster.gpu", cluster.gpu);
  std::optional<int64_t> of_node = cluster.gpus_per_node;
  std::optional<int64_t> all = cluster.gpus;
  if (!cluster.tasks_start_ranks) {
    if (!of_node) of_node = cluster.tasks_per_node;
    if (!all) all = cluster.tasks;
  }
  if (!of_node && all && cluster.nodes && *all % *cluster.nodes == 0)
    of_node = *all / *cluster.nodes;
  if (!of_node && cluster.tasks_start_ranks) {
    plan.notes.push_back(
        "how many ranks each task starts is not known from the script: machines of 8 GPUs are "
        "assumed; give --gpus-per-node for others");
  }
  if (cluster.is_one_rank_by_default) {
    plan.notes.push_back(
        "torchrun starts one rank on each machine, because nothing gives --nproc-per-node");
  }
  if (of_node) set_key(plan, "cluster.gpus_per_node", *of_node);
  std::optional<int64_t> nodes = cluster.nodes;
  if (!nodes && all && of_node && *all % *of_node == 0) nodes = *all / *of_node;
  if (nodes) set_key(plan, "cluster.nodes", *nodes);
}

}  // namespace sim
