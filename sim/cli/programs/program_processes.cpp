#include "sim/cli/programs/program_processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "estimator/base/errors.h"
#include "estimator/base/files.h"
#include "estimator/base/number_text.h"
#include "sim/exec/program/settings.h"

namespace sim {
namespace {

namespace fs = std::filesystem;
using estimator::RankProfile;
using estimator::UserError;

std::optional<pid_t> id_of(const fs::path& folder) {
  return estimator::parse_number<pid_t>(folder.filename().string());
}

bool is_of_world(const RankProfile& profile, const WantedRank& wanted) {
  if (!wanted.world_size) return wanted.rank < profile.world_size;
  return *wanted.world_size == profile.world_size;
}

/// "rank 3 of 8 (process 4711)"
std::string described(const ProgramProcess& process) {
  return fmt::format(
      "rank {} of {} (process {})", process.profile.rank, process.profile.world_size, process.id);
}

std::string described(const std::vector<const ProgramProcess*>& processes) {
  std::string text;
  for (const ProgramProcess* process : processes) {
    text += (text.empty() ? "" : ", ") + described(*process);
  }
  return text;
}

std::vector<const ProgramProcess*> trained(const std::vector<ProgramProcess>& processes) {
  std::vector<const ProgramProcess*> found;
  for (const ProgramProcess& process : processes) {
    if (has_trained(process.profile)) found.push_back(&process);
  }
  std::sort(found.begin(), found.end(), [](const auto* a, const auto* b) {
    return std::tuple(a->profile.rank, a->id) < std::tuple(b->profile.rank, b->id);
  });
  return found;
}

/// Devices of a communicator of the process's own, which nobody named, and of which it is all
/// ranks; 1 if there is none.
int64_t devices_that_communicate(const RankProfile& profile) {
  std::map<int64_t, std::set<int64_t>> ranks;  // by size
  for (const estimator::CommunicatorRecord& communicator : profile.program->communicators) {
    if (communicator.name.empty()) ranks[communicator.size].insert(communicator.rank);
  }
  int64_t most = 1;
  for (const auto& [size, here] : ranks) {
    if (static_cast<int64_t>(here.size()) == size) most = std::max(most, size);
  }
  return most;
}

int64_t devices_at_once(const RankProfile& profile) {
  const estimator::ProgramRecord& program = *profile.program;
  std::set<int64_t> computing(program.backward_devices.begin(), program.backward_devices.end());
  computing.insert(program.product_devices.begin(), program.product_devices.end());
  return std::max(static_cast<int64_t>(computing.size()), devices_that_communicate(profile));
}

void refuse_several_devices(const ProgramProcess& process) {
  const int64_t devices = devices_at_once(process.profile);
  if (devices <= 1) return;
  throw UserError(
      {.what =
           fmt::format("one process trains on {} devices, as torch.nn.DataParallel or layers on "
                       "several devices do (device_map=\"auto\"), which is not modelled",
                       devices),
       .where = fmt::format("process {}", process.id),
       .help = "give --gpus-per-node 1 to run it on one device, have all of its layers on one, or "
               "start a process for each device (DistributedDataParallel)"});
}

/// The world that the program made has no such rank.
[[noreturn]] void refuse_rank_behind(const std::vector<const ProgramProcess*>& others,
                                     const WantedRank& wanted) {
  const int64_t made = others.front()->profile.world_size;
  const bool is_alone = made == 1;
  throw UserError(
      {.what = is_alone
                   ? "the world has one rank"
                   : fmt::format("the program's own launcher started a world of {} ranks", made),
       .where = fmt::format("--rank {}, {}", wanted.rank, described(others)),
       .help =
           is_alone ? "give --world-size N" : fmt::format("give a rank from 0 to {}", made - 1)});
}

[[noreturn]] void refuse_others(const std::vector<const ProgramProcess*>& others,
                                const WantedRank& wanted) {
  const int64_t made = others.front()->profile.world_size;
  const bool is_of_other_world = !is_of_world(others.front()->profile, wanted);
  if (is_of_other_world && !wanted.world_size) refuse_rank_behind(others, wanted);
  if (is_of_other_world) {
    throw UserError(
        {.what = fmt::format("the program's own launcher started a world of {} ranks, not of {}",
                             made,
                             *wanted.world_size),
         .where = described(others),
         .help = fmt::format("give --world-size {}, or start the program without its "
                             "launcher: `onerank exec` makes the world that it sees",
                             made)});
  }
  throw UserError({.what = fmt::format("no process of the program trained as rank {}", wanted.rank),
                   .where = described(others),
                   .help = "give --rank with one that its launcher started"});
}

}  // namespace

void ProgramProcesses::look() {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder_, ignored)) {
    const auto id = id_of(entry.path());
    const fs::path file = entry.path() / kProcessProfile;
    const auto is_it = [&](const ProgramProcess& known) { return known.id == id; };
    if (!id || !fs::exists(file) || std::any_of(all_.begin(), all_.end(), is_it)) continue;
    all_.push_back({.id = *id,
                    .folder = entry.path(),
                    .profile = estimator::read_rank_profile(estimator::read_file(file.string()),
                                                            file.string()),
                    .seen = std::chrono::steady_clock::now()});
  }
}

int64_t ProgramProcesses::count_started() const {
  std::error_code ignored;
  const fs::directory_iterator folders(folder_, ignored);
  return std::count_if(begin(folders), end(folders), [](const auto& entry) {
    return id_of(entry.path()).has_value();
  });
}

std::string ProgramProcesses::recorder_error() const {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder_, ignored)) {
    const fs::path file = entry.path() / kInternalError;
    if (id_of(entry.path()) && fs::exists(file)) return estimator::read_file(file.string());
  }
  return "";
}

bool has_trained(const RankProfile& profile) {
  return profile.program->optimizer_steps > 0 || profile.out_of_memory ||
         !profile.program->unanswered.empty();
}

std::vector<const ProgramProcess*> candidates(const std::vector<ProgramProcess>& processes,
                                              const WantedRank& wanted) {
  std::vector<const ProgramProcess*> found = trained(processes);
  std::erase_if(found, [&](const ProgramProcess* process) {
    return process->profile.rank != wanted.rank || !is_of_world(process->profile, wanted);
  });
  return found;
}

const ProgramProcess& rank_process(const std::vector<ProgramProcess>& processes,
                                   const WantedRank& wanted) {
  for (const ProgramProcess* process : trained(processes)) refuse_several_devices(*process);
  const auto found = candidates(processes, wanted);
  if (found.size() == 1) return *found.front();
  if (found.size() > 1) {
    throw UserError(
        {.what = fmt::format("several processes of the program trained as rank {}", wanted.rank),
         .where = described(found),
         .help = "run one training at a time, or a launcher that tells each process its rank"});
  }
  const auto others = trained(processes);
  if (!others.empty()) refuse_others(others, wanted);
  const auto told = [&](const ProgramProcess& process) {
    return std::tuple(process.profile.rank == wanted.rank,
                      process.profile.peak.reserved_bytes,
                      process.profile.peak.allocated_bytes);
  };
  return *std::max_element(processes.begin(), processes.end(), [&](const auto& a, const auto& b) {
    return told(a) < told(b);
  });
}

bool is_running(pid_t id) {
  std::ifstream file(fmt::format("/proc/{}/stat", id));
  const std::string stat{std::istreambuf_iterator<char>(file), {}};
  const size_t name_end = stat.rfind(')');  // the state follows the name, which may hold anything
  return name_end != std::string::npos && name_end + 2 < stat.size() && stat[name_end + 2] != 'Z';
}

}  // namespace sim
