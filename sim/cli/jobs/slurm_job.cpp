#include "sim/cli/jobs/slurm_job.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <filesystem>
#include <vector>

#include "estimator/base/files.h"
#include "estimator/base/text.h"
#include "sim/cli/jobs/typed_arguments.h"
#include "sim/cli/torch/installation.h"
#include "sim/cli/values/strict_number.h"

namespace sim {
namespace {

namespace fs = std::filesystem;
using estimator::shell_word;
using estimator::UserError;

constexpr const char* kSlurm = "--slurm";
constexpr const char* kParts = "--parts";
constexpr const char* kPart = "--part";
constexpr const char* kStore = "--store";
constexpr int64_t kMostParts = 1000;  // MaxArraySize is 1,001 unless a site says otherwise

constexpr const char* kScript = R"(#!/bin/sh
#SBATCH --job-name=onerank-{name}
#SBATCH --nodes=1
#SBATCH --exclusive
#SBATCH --output={log}
{directive}
cd {folder} || exit
exec {command}
)";

constexpr const char* kSubmit = R"(#!/bin/sh
# Starts the parts and, when they have ended, the merge. Arguments go to sbatch (--partition=NAME).
# Ranks that were executed are not executed again.
set -e
parts=$(sbatch --parsable "$@" {parts})
sbatch --dependency="afterany:${{parts%%;*}}" "$@" {merge}
)";

/// What of the parsed command line the parts and the merge have, too.
std::vector<std::string> shared_arguments(const CLI::App& app) {
  return typed_arguments(app, [](const CLI::Option& option, const std::string&) {
    const std::string name = long_name(option);
    return name == kSlurm || name == kParts || name == kStore;
  });
}

std::string command_line(const CLI::App& app, const std::string& store) {
  std::string line = fmt::format("{} {}", shell_word(own_program().string()), app.get_name());
  for (const std::string& argument : shared_arguments(app)) line += " " + shell_word(argument);
  return line + fmt::format(" {} {}", kStore, shell_word(store));
}

}  // namespace

void SlurmOptions::add_to(CLI::App& app) {
  constexpr const char* kGroup = "Several machines";
  app.add_option(kSlurm,
                 folder_,
                 "execute nothing here, but write a job array of Slurm and its merge into this "
                 "folder, which all machines must see")
      ->type_name("DIR")
      ->group(kGroup);
  app.add_option(kParts, parts_, "parts of that job (default: 4)")->type_name("N")->group(kGroup);
  app.add_option(kPart,
                 part_,
                 "execute only part I of N, from 0, into the folder of --store, and report nothing")
      ->type_name("I/N")
      ->group(kGroup);
}

std::optional<Part> SlurmOptions::part(const ClusterJob& job) const {
  if (part_.empty()) return std::nullopt;
  const std::size_t slash = part_.find('/');
  const bool is_pair = slash != std::string::npos;
  const Part part{.number = parse_whole_number(part_.substr(0, slash), kPart),
                  .count = is_pair ? parse_positive_number(part_.substr(slash + 1), kPart) : 0};
  if (part.number < 0 || part.number >= part.count) {
    throw UserError({.what = "a part is one of several, counted from 0",
                     .where = fmt::format("{} {}", kPart, part_),
                     .help = "write it as 0/4, 1/4, 2/4 or 3/4"});
  }
  if (job.store().empty()) {
    throw UserError({.what = "what a part executes has no place",
                     .where = fmt::format("{} {} without {}", kPart, part_, kStore),
                     .help = fmt::format("add {} DIR, the same for all parts", kStore)});
  }
  return part;
}

std::string SlurmOptions::write_job(const CLI::App& app, const ClusterJob& job) const {
  const int64_t parts = parse_positive_number(parts_, kParts);
  if (parts > kMostParts || !part_.empty()) {
    throw UserError({.what = part_.empty() ? "too many parts" : "a part of a job makes no job",
                     .where = part_.empty() ? fmt::format("{} {}", kParts, parts)
                                            : fmt::format("{} with {}", kSlurm, kPart),
                     .help = part_.empty() ? fmt::format("give at most {}", kMostParts)
                                           : fmt::format("leave out one of the two")});
  }
  estimator::make_folder(folder_);
  const fs::path folder = fs::absolute(folder_);
  const std::string store =
      fs::absolute(job.store().empty() ? folder / "ranks" : fs::path(job.store())).string();
  const std::string command = command_line(app, store);
  const auto script = [&](const std::string& name,
                          const std::string& log,
                          const std::string& directive,
                          const std::string& line) {
    const fs::path path = folder / (name + ".sbatch");
    estimator::write_file_whole(
        path.string(),
        fmt::format(kScript,
                    fmt::arg("name", app.get_name() + "-" + name),
                    fmt::arg("log", shell_word((folder / log).string())),
                    fmt::arg("directive", directive),
                    fmt::arg("folder", shell_word(fs::current_path().string())),
                    fmt::arg("command", line)));
    return shell_word(path.string());
  };
  const std::string of_parts =
      script("parts",
             "part-%a.log",
             fmt::format("#SBATCH --array=0-{}", parts - 1),
             fmt::format("{} {} \"$SLURM_ARRAY_TASK_ID/{}\"", command, kPart, parts));
  const std::string merge =
      script("merge", "merge.log", "", command + " >" + shell_word((folder / "report").string()));
  const std::string submit = (folder / "submit.sh").string();
  estimator::write_file_whole(
      submit, fmt::format(kSubmit, fmt::arg("parts", of_parts), fmt::arg("merge", merge)));
  return fmt::format(
      "{} parts and their merge are in {}\n  start them: sh {}\n  the report will be {}\n",
      parts,
      folder.string(),
      shell_word(submit),
      (folder / "report").string());
}

std::string part_text(const Part& part, int64_t ranks) {
  return fmt::format("part {} of {}: its {} ranks are kept\n", part.number, part.count, ranks);
}

}  // namespace sim
