#include "sim/cli/rank_options.h"

#include <fmt/format.h>

#include "sim/cli/device_choice.h"
#include "sim/cli/strict_number.h"

namespace sim {

void RankOptions::add_to(CLI::App& app) {
  constexpr const char* kGroup = "Execution";
  app.add_option(
         "--device", device_, "auto (cuda with a driver, else virtual), cuda, virtual or cpu")
      ->type_name("NAME")
      ->group(kGroup);
  app.add_flag("--all-micro-batches",
               all_micro_batches_,
               "run every micro-batch, not only as many as the peak needs")
      ->group(kGroup);
  app.add_option("--jobs", jobs_, "ranks that run at the same time")->type_name("N")->group(kGroup);
}

RankJob RankOptions::job(std::vector<int64_t> ranks) const {
  RankJob job{.ranks = std::move(ranks),
              .device = choose_device(device_),
              .all_micro_batches = all_micro_batches_,
              .jobs = std::nullopt};
  if (!jobs_.empty()) {
    job.jobs = parse_whole_number(jobs_, "--jobs");
    if (*job.jobs < 1 || *job.jobs > 1024) {
      throw estimator::UserError({.what = "a number is out of range",
                                  .where = fmt::format("--jobs = {}", *job.jobs),
                                  .help = "use a number from 1 to 1024"});
    }
  }
  return job;
}

}  // namespace sim
