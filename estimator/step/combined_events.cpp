#include "estimator/step/combined_events.h"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "estimator/schedule/piece_order.h"

namespace estimator {
namespace {

/// The events of a forward or backward, by the number of their piece. What comes before its first
/// piece, as what is received, belongs to this one.
class PiecesOf {
 public:
  PiecesOf(const OrderEvents& events, const LapEvents& own) {
    LapEvents before;
    LapEvents* piece = &before;
    for (const std::size_t event : own) {
      if (static_cast<OrderKind>(events.kind[event]) == OrderKind::kPiece) {
        const int64_t number = events.item[event];
        layers_ = std::max(layers_, number / kPieceKinds + (is_of_layer(number) ? 1 : 0));
        piece = &pieces_[number];
        piece->insert(piece->end(), before.begin(), before.end());
        before.clear();
      }
      piece->push_back(event);
    }
    if (pieces_.empty()) throw std::logic_error("a chunk that was not run in pieces");
  }

  int64_t layers() const { return layers_; }
  void append_piece(int64_t number, LapEvents& all) const {
    const auto found = pieces_.find(number);
    if (found != pieces_.end()) all.insert(all.end(), found->second.begin(), found->second.end());
  }

 private:
  static bool is_of_layer(int64_t number) {
    const auto kind = static_cast<PieceKind>(number % kPieceKinds);
    return kind != PieceKind::kBegin && kind != PieceKind::kEnd;
  }

  int64_t layers_ = 0;
  std::map<int64_t, LapEvents> pieces_;
};

}  // namespace

std::set<ChunkPair> pairs_of(const ScheduleShape& shape, int64_t stage) {
  const std::vector<PipelineStep> steps = stage_steps(shape, stage);
  std::set<ChunkPair> pairs;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (is_combined(shape, stage, steps, i)) pairs.insert({steps[i].chunk, steps[i + 1].chunk});
  }
  return pairs;
}

LapEvents combined_events(const OrderEvents& events,
                          const LapEvents& forward,
                          const LapEvents& backward,
                          bool attention_released_early) {
  const PiecesOf forwards(events, forward), backwards(events, backward);
  LapEvents all;
  for (const Piece& piece : piece_order({.forward_layers = forwards.layers(),
                            .backward_layers = backwards.layers(),
                            .attention_released_early = attention_released_early})) {
    (piece.is_backward ? backwards : forwards).append_piece(piece.number(), all);
  }
  return all;
}

}  // namespace estimator
