// The memory and the times of a stage, from the executed pieces of its family.
//
// Allocated bytes are a line in the number of layers, and in the number of forwards whose
// activations are held; the slope of the second is a line in the number of layers too. This holds
// to the allocator's block for each phase, because all layers are alike. Where a stage has several
// chunks, those in flight follow from its schedule (held_forwards.h). The peak is the largest of
// the phases. Times of kernels, and of calls that wait for one another, are lines in the number of
// layers.
//
// A stage of torch.distributed.pipelining has buffers for all micro-batches of a step, of which the
// pieces have fewer (models/pipeline/torch_stage.h): their bytes follow from the messages.
//
// While a model is built, the weights of one chunk exist twice for a moment: in their modules and
// in the flat buffer.
//
// What PyTorch's allocator reserves beyond that depends on the order of its requests. It is taken
// as a line in the bytes of activations that are in flight. This is the part of a composed stage
// that is not exact.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <vector>

#include "estimator/compose/held_forwards.h"
#include "estimator/compose/pieces.h"
#include "estimator/step/stage_time.h"

namespace estimator {

/// What a stage is to be.
struct StageWish {
  StagePlace place = StagePlace::kOnly;  ///< of the stage
  std::vector<StagePlace> chunks;        ///< place of each of its model chunks
  std::vector<int64_t> layers;           ///< of each chunk
  int64_t in_flight = 1;                 ///< forwards of a chunk whose activations are held at once
  int64_t stage = 0;                     ///< its place in the pipeline; only of several chunks
  int64_t micro_batches = 0;             ///< that it reaches its peak with; only of several chunks
  bool overlaps_reduction = false;       ///< the plan overlaps the reduction of gradients
  int64_t buffered = 0;  ///< micro-batches for which the stage has buffers; 0: it has none

  double all_layers() const;
  double layers_of_chunk() const;  ///< the mean
  bool operator<(const StageWish& other) const;
};

struct StageMemory {
  /// Within 1 % of the same stage executed (measured: 168 layouts of seven searches). Where the
  /// stage's chunks have not as many layers each, 2 % are allowed for, and 10 % for several
  /// chunks of torch.distributed.pipelining, whose parameters are gathered chunk by chunk
  /// (measured: 25 layouts of TorchTitan, 2.8 % at most under ZeRO stage 2 and 9.8 under 3; one
  /// chunk 0.01).
  int64_t allocated_bytes = 0;
  int64_t least_allocated_bytes = 0;  ///< the same without what it may be off by
  int64_t reserved_bytes = 0;         ///< with an estimate of what the allocator loses
};

/// A piece that was executed.
struct ExecutedPiece {
  PieceRun run;
  RankProfile profile;
};

/// The executed pieces of one family, of a pipeline or of a single stage.
class PieceSet {
 public:
  /// The pieces of piece_runs(), in their order.
  explicit PieceSet(std::vector<ExecutedPiece> pieces);

  /// The memory of a stage of `plan`.
  StageMemory memory(const Plan& plan, const StageWish& wish) const;

  /// The piece with this place and the smaller or the larger number of layers. If several are
  /// middle stages, the one with most in flight.
  const ExecutedPiece& piece(StagePlace place, std::size_t size) const;

 private:
  /// Of one phase of a piece, in bytes.
  struct PhaseSample {
    double peak = 0;    ///< allocated
    double after = 0;   ///< allocated at its end
    double shared = 0;  ///< what the data ranks share
    double lost = 0;    ///< reserved at its peak, beyond the allocated peak
  };
  struct Sample {
    double layers = 0;
    double in_flight = 0;
    std::vector<PhaseSample> phases;
  };
  using OfSizes = std::array<Sample, kPieceLayers.size()>;

  /// How a phase grows in the middle of a pipeline.
  struct Growth {
    /// Allocated bytes that one more forward in flight adds, with fewer and with more layers.
    std::array<double, kPieceLayers.size()> in_flight{};
    double first_in_flight = 0;  ///< that the first stage adds besides: masks of the embedding
    double lost_in_flight = 0;   ///< for each layer of each forward in flight
    double lost_beyond = 0;      ///< for each layer beyond those of the larger piece

    double slope(double layers) const;
  };

  static Sample sample_of(const ExecutedPiece& piece);
  double input_bytes() const;
  std::vector<double> forward_bytes(const StageWish& wish, const Growth& growth) const;
  HeldBytes held_bytes(const Plan& plan, const StageWish& wish, const Growth& growth) const;
  bool builds(std::size_t phase) const;
  bool has_forwards(std::size_t phase) const;
  double not_gathered_bytes(const Plan& plan, const StageWish& wish, std::size_t phase) const;
  /// What one more layer adds to a peak, and of this to each forward in flight.
  struct LayerBytes {
    double of_forward = 0;
    double all = 0;
  };
  LayerBytes layer_bytes_of_first(std::size_t phase) const;
  double peak_of_first(const Plan& plan, const StageWish& wish, std::size_t phase) const;
  double peak_in_flight(const Plan& plan, const StageWish& wish, std::size_t phase) const;
  double allocated_bytes(const Plan& plan, const StageWish& wish, std::size_t phase) const;
  double lost_of_stage(const StageWish& wish, std::size_t phase) const;
  double buffer_bytes(const Plan& plan, const StageWish& wish) const;
  double most_in_flight(const Plan& plan,
                        const StageWish& wish,
                        std::size_t phase,
                        std::optional<int64_t> of_chunk = std::nullopt) const;
  void measure_growth(const OfSizes& middle, const OfSizes& next);
  void measure_first(const Sample& first, const Sample& next);
  double lost_bytes(const OfSizes& samples,
                    std::size_t phase,
                    double layers,
                    double layers_in_flight) const;

  std::vector<ExecutedPiece> pieces_;
  std::map<StagePlace, OfSizes> samples_;
  std::vector<Growth> growth_;  ///< of each phase
};

/// The times of pieces as those of `plan`'s stages, with the smaller and the larger number of
/// layers.
struct PricedPieces {
  std::map<StagePlace, std::array<StageTime, kPieceLayers.size()>> times;

  /// The times of the stage.
  StageTime time(const StageWish& wish) const;
};

/// What each stage of `plan` is to be.
std::vector<StageWish> stage_wishes(const Plan& plan);

/// The share of the rates at which pieces are priced a second time.
constexpr double kSlowSpeed = 0.7;

/// A stage whose products and attention run at the share `speed` of the rates, from the same stage
/// at the rates and at kSlowSpeed: seconds are taken to lie on a line in 1 / speed.
StageTime at_speed(const StageTime& usual, const StageTime& slow, double speed);

}  // namespace estimator
