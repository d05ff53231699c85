#include "sim/cli/ranks/rank_store.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string_view>
#include <vector>

#include "estimator/base/fields.h"
#include "estimator/base/files.h"
#include "estimator/base/stable_hash.h"
#include "estimator/what_if/equal_ranks.h"
#include "sim/cli/ranks/rank_program.h"
#include "sim/cli/torch/installation.h"

namespace sim {
namespace {

namespace fs = std::filesystem;
using estimator::Json;
using estimator::Plan;

constexpr const char* kProfile = "profile";
constexpr const char* kRefusal = "refusal";

/// The files in a folder, by name; empty if it cannot be read.
std::vector<fs::path> files_in(const fs::path& folder) {
  std::error_code ignored;
  const fs::directory_iterator entries(folder, ignored);
  std::vector<fs::path> files(begin(entries), end(entries));
  std::sort(files.begin(), files.end());
  return files;
}

/// A hash of the rank process and of the virtual GPU's libraries.
std::string hash_of_program(const Environment& environment) {
  std::vector<fs::path> files = files_in(parts_folder() / "virtual_gpu/lib");
  files.push_back(rank_program_file(environment));
  std::string hashes;
  for (const fs::path& file : files) {
    if (!fs::is_regular_file(file)) continue;
    hashes += fmt::format("{:016x}", estimator::stable_hash(estimator::read_file(file.string())));
  }
  return fmt::format("{:016x}", estimator::stable_hash(hashes));
}

std::string how_to_run(const RankJob& job, const Environment& environment) {
  const bool is_real = job.device == estimator::DeviceKind::kCuda;
  return fmt::format("onerank {}, program {}, torch {}, device {}{}{}{}{}",
                     ONERANK_VERSION,
                     hash_of_program(environment),
                     ONERANK_TORCH_VERSION,
                     estimator::to_string(job.device),
                     is_real ? " " + gpus_of_driver() : "",
                     job.all_micro_batches ? ", all micro-batches" : "",
                     job.attribute_memory ? ", attributed" : "",
                     job.lift_limit ? ", without limit" : "");
}

}  // namespace

std::string gpus_of_driver(const fs::path& folder) {
  constexpr std::string_view kKey = "Model:";
  std::set<std::string> names;
  for (const fs::path& gpu : files_in(folder)) {
    std::ifstream information(gpu / "information");
    for (std::string line; std::getline(information, line);) {
      if (!line.starts_with(kKey)) continue;
      const std::size_t name = line.find_first_not_of(" \t", kKey.size());
      if (name != line.npos) names.insert(line.substr(name));
    }
  }
  return fmt::format("{}", fmt::join(names, " and "));
}

RankStore::RankStore(const RankJob& job, const Environment& environment) : folder_(job.store) {
  if (folder_.empty()) return;
  estimator::make_folder(folder_);
  how_ = how_to_run(job, environment);
}

std::string RankStore::key_of(const Plan& plan, int64_t rank) const {
  return how_ + ", " + estimator::rank_run_key(plan, rank);
}

std::string RankStore::path_of(const std::string& key) const {
  return (fs::path(folder_) / fmt::format("{:016x}.json", estimator::stable_hash(key))).string();
}

std::optional<RanksAnswer> RankStore::find(const RanksOfPlan& ranks) const {
  if (folder_.empty()) return std::nullopt;
  RanksAnswer answer;
  for (const int64_t rank : ranks.ranks) {
    const std::string key = key_of(*ranks.plan, rank);
    const std::string path = path_of(key);
    if (!std::filesystem::exists(path)) return std::nullopt;
    const Json kept = Json::parse(estimator::read_file(path), nullptr, false);
    if (!kept.is_object() || kept.value("key", "") != key) return std::nullopt;
    if (kept.contains(kRefusal)) return RanksAnswer{.profiles = {}, .refusal = kept.at(kRefusal)};
    answer.profiles.push_back(estimator::as_rank_of(
        *ranks.plan, estimator::read_rank_profile(kept.at(kProfile).dump(), path)));
  }
  return answer;
}

void RankStore::keep_profile(const Plan& plan, int64_t rank, const std::string& profile) const {
  keep(plan, rank, kProfile, profile);
}

void RankStore::keep_refusal(const Plan& plan, int64_t rank, const std::string& refusal) const {
  keep(plan, rank, kRefusal, Json(refusal).dump());
}

void RankStore::keep(const Plan& plan,
                     int64_t rank,
                     const char* what,
                     const std::string& json) const {
  if (folder_.empty()) return;
  const std::string key = key_of(plan, rank);
  estimator::write_file_whole(
      path_of(key), fmt::format("{{\"key\": {}, \"{}\": {}}}\n", Json(key).dump(), what, json));
}

}  // namespace sim
