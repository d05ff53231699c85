#include "estimator/schedule/folded_replay.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/estimator/schedule/schedule_kinds.h"

namespace estimator {
namespace {

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
                           .parameters_wait_seconds = 0.4 * send,
                           .last_backward_added_seconds = 0.17});
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
      EXPECT_NEAR(
          folded[i].stages[s].long_wait_seconds, whole[i].stages[s].long_wait_seconds, close);
    }
    for (std::size_t c = 0; c < whole[i].gradients_ready_seconds.size(); ++c) {
      EXPECT_NEAR(folded[i].gradients_ready_seconds[c], whole[i].gradients_ready_seconds[c], close);
    }
  }
}

const std::vector<ScheduleShape> kFoldedShapes = {{k1f1b, 1, 64},
                                                  {k1f1b, 4, 400},
                                                  {k1f1b, 7, 1001},
                                                  {k1f1b, 8, 256},
                                                  {k1f1b, 4, 256, 2},
                                                  {k1f1b, 4, 403, 3},
                                                  {k1f1b, 3, 410, 2, 5}};

TEST(FoldedReplay, OfStagesAsModelsHaveThemIsTheWholeReplay) {
  for (const ScheduleShape& shape : kFoldedShapes) {
    for (const double last : {0.0, 0.05, 0.4}) {
      for (const bool overlap_sends : {false, true}) {
        const DurationVariants variants = model_like(shape, 0.1, last);
        const auto folded = replay_folded(shape, variants, {.overlap_sends = overlap_sends});
        ASSERT_TRUE(folded) << shape.stages << " stages, " << shape.chunks << " chunks, " << last;
        expect_same(
            *folded,
            replay_variants(make_schedule(shape), variants, {.overlap_sends = overlap_sends}));
      }
    }
  }
}

// Where transfers are on the way of everything, stages are in step only after several periods.
TEST(FoldedReplay, OfSlowTransfersIsTheWholeReplay) {
  for (const ScheduleShape& shape : {ScheduleShape{k1f1b, 4, 400}, ScheduleShape{k1f1b, 8, 256}}) {
    for (const bool overlap_sends : {false, true}) {
      const DurationVariants variants = model_like(shape, 0.1, 0.2, 0.9);
      const auto folded = replay_folded(shape, variants, {.overlap_sends = overlap_sends});
      ASSERT_TRUE(folded);
      expect_same(
          *folded,
          replay_variants(make_schedule(shape), variants, {.overlap_sends = overlap_sends}));
    }
  }
}

// Stages that differ at random may be near ties, which settle late: then there is no folded replay.
TEST(FoldedReplay, OfStagesOfAnyTimeIsTheWholeReplayOrNone) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> seconds(0.5, 1.5);
  int found = 0;
  for (int round = 0; round < 40; ++round) {
    for (const ScheduleShape& shape : kFoldedShapes) {
      DurationVariants variants = model_like(shape, 0, 0);
      for (std::size_t c = 0; c < variants[0].size(); ++c) {
        const double forward = seconds(random), backward = seconds(random);
        for (auto& variant : variants) {
          variant[c].forward_seconds = forward;
          variant[c].backward_seconds = backward;
        }
      }
      const auto folded = replay_folded(shape, variants, {.overlap_sends = round % 2 == 0});
      if (!folded) continue;
      ++found;
      expect_same(
          *folded,
          replay_variants(make_schedule(shape), variants, {.overlap_sends = round % 2 == 0}));
    }
  }
  EXPECT_GT(found, 40);
}

// Before its first forward a stage waits for its parameters, once: 40 micro-batches of 2.6 s come
// after a wait of 5 s. One stage waits for nothing else.
TEST(FoldedReplay, WaitsForTheParametersOnce) {
  const std::vector<ChunkDuration> duration = {
      {.forward_seconds = 0.7, .backward_seconds = 1.9, .parameters_ready_seconds = 5}};
  for (const auto& replay : replay_shape({k1f1b, 1, 40}, {duration, duration, duration}, {})) {
    EXPECT_NEAR(replay.end_seconds(), 5 + 40 * 2.6, 1e-9);
  }
}

ScheduleShape any_shape(std::mt19937& random) {
  const auto between = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  constexpr std::array kKinds = {k1f1b,
                                 k1f1b,  // the one that folds: more often
                                 ScheduleKind::kGpipe,
                                 ScheduleKind::kZeroBubbleH1,
                                 ScheduleKind::kZeroBubbleV,
                                 ScheduleKind::kDualPipeV};
  ScheduleShape shape{.kind = kKinds[static_cast<std::size_t>(between(0, kKinds.size() - 1))],
                      .stages = between(1, 6)};
  const bool v_shaped =
      shape.kind == ScheduleKind::kZeroBubbleV || shape.kind == ScheduleKind::kDualPipeV;
  if (v_shaped) shape.chunks = 2;
  if (shape.kind == k1f1b && shape.stages > 1) shape.chunks = between(1, 3);
  const int64_t group = shape.chunks > 1 ? shape.stages : 1;
  shape.micro_batches = group * between(2, 300 / group);
  return shape;
}

/// Times in whole steps as often as not, so that stages tie; every chunk has a time of its own, or
/// all of them the same.
DurationVariants any_durations(const ScheduleShape& shape, std::mt19937& random) {
  const bool ties = random() % 2 == 0, alike = random() % 2 == 0;
  const auto seconds = [&](double most) {
    if (ties) return std::round(std::uniform_real_distribution<>(0, 4)(random)) / 4 * most;
    return std::uniform_real_distribution<>(0, most)(random);
  };
  const auto drawn = [&] {
    return ChunkDuration{.forward_seconds = 0.5 + seconds(1),
                         .backward_seconds = 1 + seconds(2),
                         .backward_weight_seconds = seconds(1),
                         .send_forward_seconds = seconds(0.5),
                         .send_backward_seconds = seconds(0.5)};
  };
  const ChunkDuration one = drawn();
  DurationVariants variants;
  for (int64_t i = 0; i < shape.virtual_stages(); ++i) {
    ChunkDuration duration = alike ? one : drawn();
    duration.parameters_ready_seconds = seconds(20);
    duration.last_backward_added_seconds = seconds(1);
    duration.parameters_wait_seconds = seconds(1);
    variants[0].push_back(duration);
    duration.parameters_ready_seconds = 0;
    variants[1].push_back(duration);
    duration.send_forward_seconds = duration.send_backward_seconds = 0;
    variants[2].push_back(duration);
  }
  return variants;
}

TEST(FoldedReplay, OfAnyScheduleAndAnyTimesIsTheWholeReplay) {
  std::mt19937 random(16);
  int folded = 0;
  for (int round = 0; round < 2000; ++round) {
    const ScheduleShape shape = any_shape(random);
    const DurationVariants variants = any_durations(shape, random);
    const ReplayOptions options{.overlap_sends = random() % 2 == 0,
                                .long_wait_seconds = static_cast<double>(random() % 3)};
    folded += replay_folded(shape, variants, options).has_value();
    expect_same(replay_shape(shape, variants, options),
                replay_variants(make_schedule(shape), variants, options));
    ASSERT_FALSE(HasFailure()) << to_string(shape.kind) << ", " << shape.stages << " stages, "
                               << shape.chunks << " chunks, " << shape.micro_batches
                               << " micro-batches, round " << round;
  }
  EXPECT_GT(folded, 200);
}

TEST(FoldedReplay, LeavesNothingOutOfShortStepsAndOtherSchedules) {
  for (const ScheduleShape& shape :
       {ScheduleShape{k1f1b, 8, 32}, ScheduleShape{ScheduleKind::kGpipe, 4, 400}}) {
    const DurationVariants variants = model_like(shape, 0, 0);
    EXPECT_FALSE(replay_folded(shape, variants, {}));
    expect_same(replay_shape(shape, variants, {}),
                replay_variants(make_schedule(shape), variants, {}));
  }
}

TEST(FoldedReplay, OfCombinedPairsIsThatOfAllMicroBatches) {
  const ScheduleShape shape{
      .kind = k1f1b, .stages = 4, .micro_batches = 400, .chunks = 2, .combines_pairs = true};
  DurationVariants variants = model_like(shape, 0.1, 0.3);
  for (std::vector<ChunkDuration>& durations : variants) {
    for (ChunkDuration& duration : durations) {
      const double both = duration.forward_seconds + duration.backward_seconds;
      duration.pair_seconds = {0.8 * both, 0.9 * both};
    }
  }
  const auto folded = replay_folded(shape, variants, {});
  ASSERT_TRUE(folded.has_value());
  expect_same(*folded, replay_variants(make_schedule(shape), variants, {}));
}

}  // namespace
}  // namespace estimator
