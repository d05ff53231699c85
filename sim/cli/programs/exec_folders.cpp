#include "sim/cli/programs/exec_folders.h"

#include <fmt/format.h>

#include <random>

#include "estimator/base/files.h"

namespace sim {
namespace {

std::string name_of_new_run() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

}  // namespace

ExecFolders::ExecFolders(const std::filesystem::path& output, bool has_several_ranks) {
  if (has_several_ranks) peers_.emplace();
  if (output.empty()) {
    output_ = profiles_.emplace().path();
  } else {
    output_ = std::filesystem::absolute(output);
    estimator::make_folder(output_.string());
  }
}

void ExecFolders::put_into(ExecJob& job) const {
  job.memory_folder = memory_.path();
  job.output_folder = output_;
  if (!peers_) return;
  job.peers_folder = peers_->path();
  job.run = name_of_new_run();
}

}  // namespace sim
