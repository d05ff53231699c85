#include "estimator/schedule/folded_replay.h"

#include <gtest/gtest.h>

#include <random>

namespace estimator {
namespace {

constexpr auto k1f1b = ScheduleKind::kOneForwardOneBackward;

/// A first stage with an embedding, a last one with a head, and equal ones between, as models have.
DurationVariants model_like(const ScheduleShape& shape,
                            double first,
                            double last,
                            double send = 0.013) {
  std::vector<ChunkDuration> durations;
  for (int64_t s = 0; s < shape.stages; ++s) {
    for (int64_t c = 0; c < shape.chunks; ++c) {
      const int64_t piece = virtual_stage(shape, s, c);
      const double more = piece == 0 ? first : piece + 1 == shape.virtual_stages() ? last : 0;
      durations.push_back({.forward_seconds = 0.7 + more,
                           .backward_seconds = 1.9 + 2 * more,
                           .send_forward_seconds = send,
                           .send_backward_seconds = 1.3 * send,
                           .parameters_ready_seconds = 0.3 * static_cast<double>(piece),
                           .last_backward_added_seconds = 0.17,
                           .last_send_added_seconds = 0.4 * send});
    }
  }
  DurationVariants variants;
  variants.fill(durations);
  for (ChunkDuration& duration : variants[1]) duration.parameters_ready_seconds = 0;
  for (ChunkDuration& duration : variants[2])
    duration = {.forward_seconds = duration.forward_seconds,
                .backward_seconds = duration.backward_seconds};
  return variants;
}

void expect_same(const std::array<ScheduleReplay, kVariants>& folded,
                 const std::array<ScheduleReplay, kVariants>& whole) {
  for (std::size_t i = 0; i < kVariants; ++i) {
    const double close = 1e-11 * whole[i].end_seconds();
    for (std::size_t s = 0; s < whole[i].stages.size(); ++s) {
      EXPECT_NEAR(folded[i].stages[s].end_seconds, whole[i].stages[s].end_seconds, close);
      EXPECT_NEAR(folded[i].stages[s].busy_seconds, whole[i].stages[s].busy_seconds, close);
    }
    for (std::size_t c = 0; c < whole[i].gradients_ready_seconds.size(); ++c) {
      EXPECT_NEAR(folded[i].gradients_ready_seconds[c], whole[i].gradients_ready_seconds[c], close);
    }
  }
}

const std::vector<ScheduleShape> kShapes = {{k1f1b, 1, 64},
                                            {k1f1b, 4, 400},
                                            {k1f1b, 7, 1001},
                                            {k1f1b, 8, 256},
                                            {k1f1b, 4, 256, 2},
                                            {k1f1b, 4, 403, 3},
                                            {k1f1b, 3, 410, 2, 5}};

TEST(FoldedReplay, OfStagesAsModelsHaveThemIsTheWholeReplay) {
  for (const ScheduleShape& shape : kShapes) {
    for (const double last : {0.0, 0.05, 0.4}) {
      for (const bool overlap_sends : {false, true}) {
        const DurationVariants variants = model_like(shape, 0.1, last);
        const auto folded = replay_folded(shape, variants, overlap_sends);
        ASSERT_TRUE(folded) << shape.stages << " stages, " << shape.chunks << " chunks, " << last;
        expect_same(*folded, replay_variants(make_schedule(shape), variants, overlap_sends));
      }
    }
  }
}

// Where transfers are on the way of everything, stages are in step only after several periods.
TEST(FoldedReplay, OfSlowTransfersIsTheWholeReplay) {
  for (const ScheduleShape& shape : {ScheduleShape{k1f1b, 4, 400}, ScheduleShape{k1f1b, 8, 256}}) {
    for (const bool overlap_sends : {false, true}) {
      const DurationVariants variants = model_like(shape, 0.1, 0.2, 0.9);
      const auto folded = replay_folded(shape, variants, overlap_sends);
      ASSERT_TRUE(folded);
      expect_same(*folded, replay_variants(make_schedule(shape), variants, overlap_sends));
    }
  }
}

// Stages that differ at random may be near ties, which settle late: then there is no folded replay.
TEST(FoldedReplay, OfStagesOfAnyTimeIsTheWholeReplayOrNone) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> seconds(0.5, 1.5);
  int found = 0;
  for (int round = 0; round < 40; ++round) {
    for (const ScheduleShape& shape : kShapes) {
      DurationVariants variants = model_like(shape, 0, 0);
      for (std::size_t c = 0; c < variants[0].size(); ++c) {
        const double forward = seconds(random), backward = seconds(random);
        for (auto& variant : variants) {
          variant[c].forward_seconds = forward;
          variant[c].backward_seconds = backward;
        }
      }
      const auto folded = replay_folded(shape, variants, round % 2 == 0);
      if (!folded) continue;
      ++found;
      expect_same(*folded, replay_variants(make_schedule(shape), variants, round % 2 == 0));
    }
  }
  EXPECT_GT(found, 40);
}

TEST(FoldedReplay, LeavesNothingOutOfShortStepsAndOtherSchedules) {
  for (const ScheduleShape& shape :
       {ScheduleShape{k1f1b, 8, 32}, ScheduleShape{ScheduleKind::kGpipe, 4, 400}}) {
    const DurationVariants variants = model_like(shape, 0, 0);
    EXPECT_FALSE(replay_folded(shape, variants, true));
    expect_same(replay_shape(shape, variants, true),
                replay_variants(make_schedule(shape), variants, true));
  }
}

}  // namespace
}  // namespace estimator
