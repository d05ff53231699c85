// Composes the layouts of a search from pieces that it executes (estimator/compose/pieces.h).
//
// Families that differ only in the micro-batch, in recompute, or in whether ZeRO divides more, are
// executed in the order of what they need: where no layout of a family fits, none fits with larger
// micro-batches, less recompute or a lower ZeRO stage, and these families are not executed.
//
// A search of many pieces begins with the layouts that may be fastest (estimator/what_if/
// layout_bounds.h), and ends where what is left is surely slower than the best or surely larger
// than a GPU.
#pragma once

#include <string>
#include <vector>

#include "estimator/what_if/layout_bounds.h"
#include "estimator/what_if/search_result.h"
#include "sim/cli/jobs/cluster_job.h"
#include "sim/cli/jobs/slurm_job.h"
#include "sim/cli/layouts/layout_families.h"
#include "sim/cli/process/environment.h"
#include "sim/cli/ranks/rank_process.h"

namespace sim {

struct ComposeOptions {
  Part part;               ///< of the work
  std::size_t best = 5;    ///< so many of the fastest are wanted in each world
  bool all = false;        ///< also those that are surely slower
  bool all_times = false;  ///< also of what cannot fit
};

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
               const ComposeOptions& options,
               estimator::Search& search);

  /// Executes the pieces of the families, and composes their layouts.
  void compose_families(const std::vector<LayoutFamily*>& families,
                        Progress& progress,
                        estimator::Search& search);

  /// The costs of a layer of each plan, from its probe_runs(); of zeros where they do not run.
  std::vector<estimator::LayerCost> layer_costs(const std::vector<const estimator::Plan*>& plans,
                                                estimator::Search& search);

 private:
  void compose_by_demand(LayoutFamilies& families, estimator::Search& search);
  std::vector<RanksAnswer> execute(const std::vector<const estimator::PieceRun*>& runs,
                                   Progress& progress,
                                   estimator::Search& search);
  /// What a family is composed from.
  struct FamilyPieces {
    LayoutFamily* family = nullptr;
    std::vector<estimator::RankProfile> profiles;
    std::optional<estimator::Calibration> rates;
  };
  /// Empty if one of the pieces was not executed.
  std::optional<FamilyPieces> gathered(LayoutFamily& family, std::vector<RanksAnswer> answers);
  /// Uses up the pieces.
  void compose_family(FamilyPieces& pieces) const;

  const ClusterJob& job_;
  const Environment& environment_;
  bool takes_all_times_ = false;
  bool takes_costs_ = false;  ///< of the families' layers
  bool has_composed_ = false;
  std::string first_refusal_;  ///< of a piece
};

}  // namespace sim
