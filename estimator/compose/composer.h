// Composes memory and step time of whole layouts from executed pieces (pieces.h, composed_stage.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "estimator/cluster/cluster_estimate.h"
#include "estimator/communication/fabric.h"
#include "estimator/compose/composed_stage.h"
#include "estimator/compute/calibration.h"

namespace estimator {

/// The composed counterpart of a ClusterEstimate.
struct ComposedPlan {
  Fit outcome = Fit::kDoesNotFit;
  int64_t worst_stage = 0;
  int64_t allocated_bytes = 0;  ///< the most of all stages
  int64_t peak_bytes = 0;       ///< of the worst stage, with all that is not the allocator's
  int64_t headroom_bytes = 0;   ///< negative: it does not fit
  bool may_fit = false;  ///< the least allocated bytes alone fit; else no allocator can make it fit
  std::optional<StepTime> time = std::nullopt;  ///< empty: nobody asked for it
};

/// What plans share whose pieces are the same ones: their family, and whether they have one stage.
std::string pieces_of(const Plan& plan);

/// The layouts of one set of pieces.
class Composer {
 public:
  /// `runs` are those of piece_runs() for one of the plans, `profiles` theirs, in the same order.
  /// `calibration` may be null, and must outlive the composer.
  Composer(std::vector<PieceRun> runs,
           std::vector<RankProfile> profiles,
           const Calibration* calibration);

  /// The memory of a plan that has the same pieces_of() as the plan of the pieces; its time is left
  /// empty. Keeps what plans with equal data ranks and stages share, so it is not to be called from
  /// several threads.
  ComposedPlan compose(const Plan& plan);

  /// The step of such a plan, which takes far longer to compose: what the data ranks exchange is
  /// replayed for each number of them, and the schedule for each plan.
  StepTime time(const Plan& plan);

 private:
  /// Pieces are priced when the first time of a stage is asked for.
  struct AtSpeed {
    double speed = 1;  ///< of boards, as a share of the rates
    std::optional<PricedPieces> pieces = {};
    std::map<StageWish, StageTime> times = {};
  };
  /// What the plans with some number of data ranks and of stages share.
  struct Priced {
    Fabric fabric;
    const BoardPower* power = nullptr;                     ///< null: it is not known
    std::map<StagePlace, RankClassEstimate> outside = {};  ///< all but the allocator's bytes
    std::map<StageWish, StageMemory> memories = {};
    AtSpeed usual = {.speed = 1}, slow = {.speed = kSlowSpeed};
  };
  struct PricedKey {
    int64_t data_ranks = 1, stages = 1;
    bool is_interleaved = false;
    auto operator<=>(const PricedKey&) const = default;
  };
  struct PricedPiece {
    StagePricer pricer;
    StageRecords records = {};
  };

  Priced& priced_for(const Plan& plan);
  Priced price(const Plan& plan) const;
  PricedPieces price_pieces(const Plan& plan, const Fabric& fabric, double speed);
  const StageMemory& stage_memory(const Plan& plan, const StageWish& wish, Priced& priced) const;
  const StageTime& time_of_stage(const Plan& plan,
                                 const StageWish& wish,
                                 const Fabric& fabric,
                                 AtSpeed& at);

  PieceSet pieces_;
  const Calibration* calibration_;
  std::map<const ExecutedPiece*, PricedPiece> priced_pieces_;
  std::map<PricedKey, Priced> priced_;
};

}  // namespace estimator
