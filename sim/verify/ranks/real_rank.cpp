#include "sim/verify/ranks/real_rank.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <csignal>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "estimator/base/fields.h"
#include "estimator/base/files.h"
#include "models/pipeline/trainer.h"
#include "sim/rank/rank_run.h"
#include "sim/tracking/torch_version.h"
#include "sim/verify/compare_runs.h"
#include "sim/verify/ranks/compare_tensors.h"
#include "sim/verify/ranks/whole_model.h"
#include "sim/verify/verification.h"

namespace sim {
namespace {

using estimator::ExitCode;
using estimator::Json;
using estimator::Plan;
using estimator::RankProfile;

const RankRunOptions kOptions{
    .device = estimator::DeviceKind::kCpu, .all_micro_batches = true, .attribute_memory = false};

std::string result_key(int64_t rank) { return fmt::format("result of rank {}", rank); }

/// What must be the same on all ranks.
Json about(const Plan& plan, const RealRankJob& job) {
  return {{"version", job.hooks.version.empty() ? ONERANK_VERSION : job.hooks.version},
          {"torch", torch_version()},
          {"world_size", job.seat.size},
          {"plan", estimator::to_json(plan)}};
}

class RealRank {
 public:
  RealRank(const Plan& plan, const RealRankJob& job)
      : plan_(plan),
        job_(job),
        layout_(plan.parallelism),
        world_(job.seat, job.timeouts, about(plan, job)) {
    verification_.rank = rank();
    verification_.coordinate = layout_.coordinate(rank());
  }

  /// Ends the world when something goes wrong.
  ExitCode live() {
    try {
      compare_with_the_stub();
      compare_with_the_whole_model();
      return agree();
    } catch (const std::exception& error) {  // above all: a peer that is gone
      world_.fail(problem(error.what()), Blame::kPerhapsAPeer);
    }
  }

 private:
  int64_t rank() const { return job_.seat.rank; }

  estimator::Problem problem(const std::string& why) const {
    return {.what = fmt::format("rank {} cannot go on", rank()),
            .where = why.substr(0, why.find('\n')),
            .help = "look at that rank's output; --timeout gives slow ranks more time"};
  }

  GlooNetwork network() const {
    return {.store = world_.store(),
            .address = local_address_towards(job_.seat.host, job_.seat.port),
            .timeout = job_.timeouts.collective};
  }

  estimator::RunRecord run(RankRunHooks hooks) const {
    estimator::RunRecord record;
    hooks.on_call = [&](const estimator::PhaseCall& call) { record.calls.push_back(call); };
    hooks.optimizer = verification_optimizer(plan_);
    record.phases = std::get<FinishedRank>(run_rank(plan_, rank(), kOptions, hooks)).profile.phases;
    return record;
  }

  void compare_with_the_stub() {
    std::vector<Snapshot> without_values;
    const estimator::RunRecord stub = run(snapshot_hooks(without_values));
    RankRunHooks hooks = snapshot_hooks(snapshots_);
    hooks.make_groups = [this](const auto& layout, const auto& kinds, const auto& sink) {
      BackendMap groups = make_gloo_groups(network(), layout, rank(), kinds, sink);
      if (job_.hooks.change_groups) job_.hooks.change_groups(rank(), groups);
      return groups;
    };
    const estimator::RunRecord real = run(std::move(hooks));
    compare_calls(rank(), stub, real, verification_.differences);
    compare_phases(rank(), stub, real, verification_.differences);
    verification_.collectives = static_cast<int64_t>(real.calls.size());
    for (const estimator::PhaseRecord& phase : real.phases) {
      verification_.peak_allocated_bytes =
          std::max(verification_.peak_allocated_bytes, phase.peak.allocated_bytes);
    }
    if (verification_.coordinate.pipeline == plan_.parallelism.pipeline - 1) {
      for (const Snapshot& snapshot : snapshots_) verification_.losses.push_back(snapshot.loss);
    }
  }

  void compare_with_the_whole_model() {
    if (rank() == 0) whole_ = run_whole_model(plan_);
    const RealGroup world =
        make_gloo_group(network(), layout_.group(estimator::GroupKind::kWorld, rank()), rank());
    compare_tensors(world_, *world.backend, whole_, std::move(snapshots_), verification_);
  }

  /// Rank 0 gathers what all found and says what it comes to.
  ExitCode agree() {
    world_.set(result_key(rank()), estimator::to_json(verification_).dump());
    if (rank() == 0) {
      const Verification verification = gather();
      estimator::write_file_whole(job_.output_folder + "/" + kVerificationFile,
                                  estimator::to_json(verification).dump());
      world_.set("verdict", verification.equal ? "equal" : "different");
    }
    const bool equal = world_.get("verdict", 0) == "equal";
    world_.leave();
    return equal ? ExitCode::kDone : ExitCode::kDifference;
  }

  Verification gather() {
    Verification verification;
    verification.tool = {.version = ONERANK_VERSION, .torch = torch_version()};
    verification.plan = estimator::to_json(plan_);
    for (const WholeIteration& whole : whole_) {
      const double loss = whole.snapshot.loss;
      verification.losses.push_back(loss);
      verification.allowed_loss_differences.push_back(
          allowed_loss_difference(plan_.training.dtype, loss, whole.wide.loss));
      verification.tolerance = std::max(verification.tolerance, whole.gradients.relative);
    }
    for (int64_t from = 0; from < job_.seat.size; ++from) {
      const std::string key = result_key(from);
      estimator::FieldReader reader(key);
      reader.read(
          estimator::parse_json(world_.get(key, from), key), verification.ranks.emplace_back(), "");
      reader.throw_if_any();
    }
    judge(verification);
    return verification;
  }

  const Plan& plan_;
  const RealRankJob& job_;
  const estimator::ParallelLayout layout_;
  World world_;
  std::vector<Snapshot> snapshots_;  // of the real run, after each iteration
  WholeModel whole_;                 // on rank 0
  RankVerification verification_;
};

}  // namespace

ExitCode be_real_rank(const Plan& plan, const RealRankJob& job) {
  std::signal(SIGPIPE, SIG_IGN);  // a rank that is gone is an error of write(), told as others are
  at::set_num_threads(1);         // ranks share the machine, and sums keep their order
  return RealRank(plan, job).live();
}

}  // namespace sim
