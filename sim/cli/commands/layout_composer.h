// Composes the layouts of a search from pieces that it executes (estimator/compose/pieces.h).
//
// Layouts of the same pieces are a family. Families that differ only in the micro-batch, in
// recompute, or in whether ZeRO divides more, are executed in the order of what they need: where no
// layout of a family fits, none fits with larger micro-batches, less recompute or a lower ZeRO
// stage, and these families are not executed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "estimator/what_if/search.h"
#include "sim/cli/commands/cluster_job.h"
#include "sim/cli/commands/slurm_job.h"
#include "sim/cli/process/environment.h"
#include "sim/cli/process/rank_process.h"

namespace sim {

class LayoutComposer {
 public:
  /// Both must outlive it.
  LayoutComposer(const ClusterJob& job, const Environment& environment)
      : job_(job), environment_(environment) {}

  /// Composes the layouts of all worlds; of a part of the work, those of every `count`th group of
  /// families that are executed in an order. Layouts whose state alone is larger than a GPU are
  /// left out. After an interrupt those are composed whose pieces were executed, and `search` says
  /// so. Throws UserError if layouts like these cannot be composed, or none can be executed.
  void compose(std::vector<estimator::Layouts>& worlds,
               const Part& part,
               estimator::Search& search);

 private:
  struct Family {
    std::vector<estimator::Layout*> layouts;
    std::vector<estimator::PieceRun> runs;
  };
  using Families = std::map<std::string, Family>;

  static Families families_of(std::vector<estimator::Layouts>& worlds, estimator::Search& search);
  static std::vector<estimator::PieceRun> runs_of(const Family& family);
  void compose_families(const std::vector<Family*>& families, estimator::Search& search);
  std::vector<RanksAnswer> execute(const std::vector<Family*>& families, estimator::Search& search);
  void compose_family(Family& family, std::vector<RanksAnswer> answers, estimator::Search& search);

  const ClusterJob& job_;
  const Environment& environment_;
  bool has_composed_ = false;
  std::string first_refusal_;  ///< of a piece
};

}  // namespace sim
