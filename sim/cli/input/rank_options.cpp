#include "sim/cli/input/rank_options.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "estimator/base/errors.h"
#include "estimator/base/range.h"
#include "sim/cli/input/device_choice.h"
#include "sim/cli/input/offered_words.h"
#include "sim/cli/process/output.h"
#include "sim/cli/values/strict_number.h"

namespace sim {
namespace {

using estimator::UserError;

constexpr int64_t kLargestRank = 999'999;  // of any world: its file has the longest name

void check_memory_files(const RankJob& job) {
  for (std::size_t file = 0; file < kMemoryFiles.size(); ++file) {
    const char* flag = kMemoryFiles[file].flag;
    if (job.memory_files[file].empty()) continue;
    check_writable(job.memory_files[file], flag);
    check_writable(path_for_rank(job.memory_files[file], kLargestRank, job.ranks.size()), flag);
    if (job.attribute_memory) continue;
    throw UserError({.what = "memory files are made from attributed allocations",
                     .where = fmt::format("{} with --no-attribution", flag),
                     .help = "leave out one of the two"});
  }
  const bool wants_history = !job.memory_files[kMemoryHistory].empty();
  if (job.device == estimator::DeviceKind::kCpu && wants_history) {
    throw UserError(
        {.what = "the device cpu has no caching allocator whose history could be kept",
         .where = fmt::format("{} with --device cpu", kMemoryFiles[kMemoryHistory].flag),
         .help = "use --device virtual, or --peak-snapshot and --memory-timeline"});
  }
}

constexpr const char* kFiles = "Memory files (of several ranks: FILE-rank-00017.ext)";

}  // namespace

void add_memory_files_to(CLI::App& app, ForEachMemoryFile<std::string>& paths) {
  for (std::size_t file = 0; file < kMemoryFiles.size(); ++file) {
    app.add_option(kMemoryFiles[file].flag, paths[file], kMemoryFiles[file].help)
        ->type_name("FILE")
        ->group(kFiles);
  }
}

void RankOptions::add_to(CLI::App& app) {
  constexpr const char* kGroup = "Execution";
  CLI::Option* device =
      app.add_option("--device",
                     device_,
                     "device of the ranks: auto (cuda if NVIDIA's driver is loaded, else virtual), "
                     "cuda, virtual or cpu");
  offer(device->type_name("NAME")->group(kGroup), device_names());
  app.add_flag("--all-micro-batches",
               all_micro_batches_,
               "run every micro-batch, not only as many as the peak needs")
      ->group(kGroup);
  app.add_option("--jobs", jobs_, "ranks that run at the same time")->type_name("N")->group(kGroup);
}

void RankOptions::add_memory_flags_to(CLI::App& app) {
  app.add_flag("--no-attribution",
               no_attribution_,
               "do not follow allocations: no modules, no categories, a little faster")
      ->group("Execution");
  add_memory_files_to(app, memory_files_);
  app.add_flag("--cpp-frames", cpp_frames_, "with the C++ functions of each allocation (slow)")
      ->group(kFiles);
}

std::optional<estimator::DeviceKind> RankOptions::named_device() const {
  if (device_ == "auto") return std::nullopt;
  return choose_device(device_);
}

RankJob RankOptions::job(std::vector<int64_t> ranks, const Environment& environment) const {
  RankJob job{.ranks = std::move(ranks),
              .device = choose_device(device_),
              .all_micro_batches = all_micro_batches_,
              .jobs = std::nullopt,
              .attribute_memory = !no_attribution_,
              .cpp_frames = cpp_frames_,
              .memory_files = memory_files_};
  if (job.device == estimator::DeviceKind::kCuda) {
    require_driver("there is no GPU to run a rank on",
                   "use --device virtual, or run it on a machine with a GPU",
                   environment);
  }
  check_memory_files(job);
  if (!jobs_.empty()) {
    job.jobs = parse_whole_number(jobs_, "--jobs");
    estimator::require_in_range(*job.jobs, {1, 1024}, "--jobs");
  }
  return job;
}

}  // namespace sim
