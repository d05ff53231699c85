#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>

#include "estimator/base/fields.h"
#include "estimator/base/files.h"
#include "estimator/base/units.h"
#include "estimator/cluster/estimate_notes.h"
#include "estimator/cluster/plan_notes.h"
#include "estimator/resolve/resolve_plan.h"
#include "sim/cli/commands/commands.h"
#include "sim/cli/commands/report_output.h"
#include "sim/cli/input/offered_words.h"
#include "sim/cli/input/plan_flags.h"
#include "sim/cli/input/table_format_flag.h"
#include "sim/cli/process/output.h"
#include "sim/cli/report/comm_report.h"
#include "sim/cli/values/byte_sizes.h"
#include "sim/cli/values/strict_number.h"

namespace sim {
namespace {

using estimator::ClusterConfig;
using estimator::CollectiveCall;
using estimator::CollectiveKind;
using estimator::ExitCode;
using estimator::GroupPlacement;
using estimator::MeasuredCollective;
using estimator::UserError;

struct CommOptions {
  std::string collective, algorithm, nccl_version;
  PlanFlags flags;
  std::string ranks_per_node;
  std::string min_bytes, max_bytes, step_factor;
  std::string measured;
  TableFormatFlag format;
};

int64_t parse_size(const std::string& text, const std::string& flag) {
  constexpr int64_t kMost = int64_t{1} << 50;
  const auto bytes = parse_bytes(text);
  if (bytes && *bytes >= 1 && *bytes <= kMost) return *bytes;
  throw UserError({.what = bytes ? "a size is out of range" : "a size is needed here",
                   .where = fmt::format("{} = \"{}\"", flag, text),
                   .help = bytes
                               ? "use a size from 1 to 1024T"
                               : fmt::format("write bytes, or a number with {}: 64K", kSizeUnits)});
}

CollectiveKind parse_collective(const std::string& name) {
  if (const auto kind = estimator::value_named<CollectiveKind>(name)) return *kind;
  throw UserError({.what = name.empty() ? "which collective?" : "unknown collective",
                   .where = fmt::format("comm \"{}\"", name),
                   .help = estimator::suggestion(name, estimator::names_of<CollectiveKind>())});
}

/// "2.26.2" as 22602; "2.26" is its first patch.
int64_t parse_nccl_version(const std::string& text) {
  int major = 0, minor = 0, patch = 0, end = 0;
  const int read = std::sscanf(text.c_str(), "%d.%d%n.%d%n", &major, &minor, &end, &patch, &end);
  const bool whole = read >= 2 && end == static_cast<int>(text.size());
  if (!whole || major != 2 || minor < 9 || minor > 99 || patch < 0 || patch > 99) {
    throw UserError({.what = "not a version of NCCL",
                     .where = fmt::format("--nccl-version = \"{}\"", text),
                     .help = "use one such as 2.27.7"});
  }
  return major * 10000 + minor * 100 + patch;
}

/// Throws UserError for a name that NCCL does not know, or that cannot run the collective there.
void take_only(const std::string& name,
               CollectiveKind kind,
               const GroupPlacement& placement,
               estimator::Fabric& fabric) {
  if (name.empty()) return;
  fabric.only_algorithm = estimator::value_named<estimator::NcclAlgorithm>(name);
  const std::string where = fmt::format("--algorithm = {}", name);
  if (!fabric.only_algorithm) {
    throw UserError(
        {.what = "unknown algorithm",
         .where = where,
         .help = estimator::suggestion(name, estimator::names_of<estimator::NcclAlgorithm>())});
  }
  if (!has_nccl_algorithms(kind) || nccl_options(kind, nccl_topology(placement, fabric)).empty()) {
    throw UserError({.what = fmt::format("NCCL cannot run {} so", to_string(kind)),
                     .where = fmt::format("{}, {} ranks", where, placement.ranks),
                     .help = "leave it out to see what NCCL chooses"});
  }
}

/// The cluster that the flags name.
ClusterConfig cluster_of(const CommOptions& options) {
  estimator::Json tree = estimator::Json::object();
  options.flags.overlay(tree);
  try {
    return estimator::resolve_cluster(tree.value("cluster", estimator::Json::object()), "comm");
  } catch (const UserError& error) {
    std::vector<estimator::Problem> problems = error.problems();
    for (estimator::Problem& problem : problems) {
      problem.where = options.flags.with_flag_names(problem.where);
    }
    throw UserError(std::move(problems));
  }
}

/// `ranks_per_node` ranks on every machine.
GroupPlacement placement_of(const ClusterConfig& cluster,
                            const estimator::Fabric& fabric,
                            int64_t ranks_per_node) {
  const int64_t nodes = cluster.nodes;
  const auto ranks_below = [&](int64_t gpus) {
    return ranks_per_node * std::min(nodes, std::max<int64_t>(1, gpus / fabric.machine_gpus));
  };
  const int64_t ranks = nodes * ranks_per_node;
  return {.ranks = ranks,
          .ranks_per_domain = ranks_below(fabric.domain_gpus),
          .ranks_per_machine = ranks_per_node,
          .ranks_per_pod = fabric.pod_gpus == 0 ? ranks : ranks_below(fabric.pod_gpus)};
}

int64_t ranks_per_node_of(const CommOptions& options, const ClusterConfig& cluster) {
  const int64_t gpus = cluster.gpus_per_node;
  if (options.ranks_per_node.empty()) return gpus;
  const int64_t ranks = parse_whole_number(options.ranks_per_node, "--ranks-per-node");
  if (ranks < 1 || ranks > gpus) {
    throw UserError({.what = "a machine does not have so many GPUs",
                     .where = fmt::format("--ranks-per-node = {}, GPUs {}", ranks, gpus),
                     .help = fmt::format("use a number from 1 to {}", gpus)});
  }
  return ranks;
}

/// The file to compare with, if one is given. Throws UserError when it is of another group.
std::optional<MeasuredCollective> measured_of(const CommOptions& options,
                                              CollectiveKind kind,
                                              const ClusterConfig& cluster,
                                              const GroupPlacement& placement) {
  if (options.measured.empty()) return std::nullopt;
  MeasuredCollective measured =
      estimator::read_nccl_tests(estimator::read_file(options.measured), options.measured, kind);
  if (measured.kind != kind || measured.ranks != placement.ranks ||
      measured.machines != cluster.nodes) {
    throw UserError(
        {.what = "the file was measured on something else",
         .where = fmt::format("{}: {} over {} ranks of {} machines; asked for {} over {} of {}",
                              options.measured,
                              to_string(measured.kind),
                              measured.ranks,
                              measured.machines,
                              to_string(kind),
                              placement.ranks,
                              cluster.nodes),
         .help = "give the collective, --nodes and --gpus-per-node that it was measured with"});
  }
  return measured;
}

/// The sizes to show: those of the measured file inside the bounds, or the bounds' own.
std::vector<int64_t> sizes_of(const CommOptions& options,
                              const std::optional<MeasuredCollective>& measured) {
  const int64_t least = parse_size(options.min_bytes, "-b");
  const int64_t most = parse_size(options.max_bytes, "-e");
  const int64_t factor = parse_whole_number(options.step_factor, "-f");
  if (least > most || factor < 2) {
    throw UserError({.what = "there is no size to show",
                     .where = fmt::format("-b {} -e {} -f {}", least, most, factor),
                     .help = "use -b SMALLEST -e LARGEST -f 2"});
  }
  std::vector<int64_t> sizes;
  if (measured) {
    for (const estimator::MeasuredPoint& point : measured->points) {
      if (point.bytes >= least && point.bytes <= most) sizes.push_back(point.bytes);
    }
  } else {
    for (int64_t bytes = least;; bytes *= factor) {
      sizes.push_back(bytes);
      if (bytes > most / factor) break;  // the next one is larger than `most`, and may not exist
    }
  }
  return sizes;
}

CommPoint point_of(const CollectiveCall& call,
                   const GroupPlacement& placement,
                   const estimator::Fabric& fabric) {
  const estimator::CollectiveTime time = collective_time(call, placement, fabric);
  CommPoint point;
  point.bytes = call.bytes;
  point.seconds = time.seconds;
  point.source = time.source;
  point.algorithm_bytes_per_second =
      time.seconds > 0 ? static_cast<double>(call.bytes) / time.seconds : 0;
  point.bus_bytes_per_second =
      bus_bytes_per_second(call.kind, placement.ranks, call.bytes, time.seconds);
  if (time.option) {
    point.algorithm = to_string(time.option->algorithm);
    point.protocol = to_string(time.option->protocol);
  }
  return point;
}

ExitCode run_comm(const CommOptions& options) {
  const ReportStyle style = style_for_output(options.format.format());
  const CollectiveKind kind = parse_collective(options.collective);
  const ClusterConfig cluster = cluster_of(options);
  estimator::Fabric fabric = fabric_of(cluster);
  const int64_t ranks_per_node = ranks_per_node_of(options, cluster);
  const GroupPlacement placement = placement_of(cluster, fabric, ranks_per_node);
  if (!options.nccl_version.empty()) {
    fabric.nccl_version = parse_nccl_version(options.nccl_version);
  }
  take_only(options.algorithm, kind, placement, fabric);
  const auto measured = measured_of(options, kind, cluster, placement);
  CommReport report{.collective = to_string(kind),
                    .gpu = fabric.gpu_cuda_name,
                    .intra_link = fabric.intra.id,
                    .inter_link = fabric.inter.id,
                    .ranks = placement.ranks,
                    .ranks_per_node = ranks_per_node,
                    .points = {},
                    .assumptions = communication_assumptions(cluster, fabric)};
  if (std::string note = estimator::machine_beyond_nvlink(cluster); !note.empty()) {
    report.assumptions.push_back(std::move(note));
  }
  for (const int64_t bytes : sizes_of(options, measured)) {
    CommPoint point = point_of({.kind = kind, .dtype = "", .bytes = bytes}, placement, fabric);
    if (measured) {
      point.measured_seconds = measured->seconds(bytes);
      point.measured_bus_bytes_per_second =
          bus_bytes_per_second(kind, placement.ranks, bytes, *point.measured_seconds);
      point.error = point.seconds / *point.measured_seconds - 1;
    }
    report.points.push_back(std::move(point));
  }
  write_to_standard_output(comm_text(report, style));
  return ExitCode::kDone;
}

}  // namespace

Command add_comm_command(CLI::App& root) {
  CLI::App* app = root.add_subcommand("comm", "time of a collective by size, as NCCL runs it");
  const auto options = std::make_shared<CommOptions>();
  CLI::Option* collective =
      app->add_option("COLLECTIVE", options->collective, "all_reduce, all_gather, all_to_all, ...");
  offer(collective->type_name(""), estimator::names_of<CollectiveKind>());
  options->flags.add_to(*app, kClusterFlags);
  app->add_option("--ranks-per-node",
                  options->ranks_per_node,
                  "ranks of the group on each machine; default: its GPUs")
      ->type_name("N")
      ->group(kClusterFlags);
  app->add_option("--nccl-version",
                  options->nccl_version,
                  "version of NCCL; differences are known in part, from 2.25 on; default: 2.30.7")
      ->type_name("VERSION")
      ->group(kClusterFlags);
  CLI::Option* algorithm = app->add_option(
      "--algorithm",
      options->algorithm,
      "the only algorithm that NCCL may choose (NCCL_ALGO): ring, tree, nvls, nvls_tree, ...");
  offer(algorithm->type_name("NAME")->group(kClusterFlags),
        estimator::names_of<estimator::NcclAlgorithm>());
  const auto size = [&](const char* names, std::string& value, const char* help) {
    app->add_option(names, value, help)->type_name("SIZE")->group("Sizes")->capture_default_str();
  };
  options->min_bytes = "8";
  options->max_bytes = "8G";
  options->step_factor = "2";
  size("-b,--minbytes", options->min_bytes, "smallest size: 8, 64K, 1M");
  size("-e,--maxbytes", options->max_bytes, "largest size: 8G");
  app->add_option("-f,--stepfactor", options->step_factor, "factor from one size to the next")
      ->type_name("N")
      ->group("Sizes")
      ->capture_default_str();
  app->add_option("--measured", options->measured, "compare with an output file of nccl-tests")
      ->type_name("FILE")
      ->group("Output");
  options->format.add_to(*app);
  return {app, [options](const Environment&) { return run_comm(*options); }};
}

}  // namespace sim
