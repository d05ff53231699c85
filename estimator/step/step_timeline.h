// The events of one step: what every stage does at which time, for traces and pictures. step_time()
// adds up the same events.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "estimator/step/step_time.h"

namespace estimator {

/// The tracks of one stage: compute of its GPU, sends to other stages, and calls over the data
/// ranks.
enum class Track { kCompute, kPipeline, kData };
constexpr std::array<EnumName<Track>, 3> enum_names(Track) {
  return {{{Track::kCompute, "compute"},
           {Track::kPipeline, "pipeline communication"},
           {Track::kData, "data communication"}}};
}

enum class Activity {
  kForward,
  kBackward,
  kBackwardInput,
  kBackwardWeight,
  kOptimizer,
  kSendForward,
  kSendBackward,
  kReduceGradients,
  kGatherParameters,
  kStepEnd,
  kDataLoading,
};
constexpr std::array<EnumName<Activity>, 11> enum_names(Activity) {
  return {{{Activity::kForward, "forward"},
           {Activity::kBackward, "backward"},
           {Activity::kBackwardInput, "backward input"},
           {Activity::kBackwardWeight, "backward weight"},
           {Activity::kOptimizer, "optimizer"},
           {Activity::kSendForward, "send activations"},
           {Activity::kSendBackward, "send gradients"},
           {Activity::kReduceGradients, "reduce gradients"},
           {Activity::kGatherParameters, "gather parameters"},
           {Activity::kStepEnd, "gradient norm and tied embeddings"},
           {Activity::kDataLoading, "wait for data"}}};
}

inline constexpr int64_t kNone = -1;

struct TimelineEvent {
  Track track = Track::kCompute;
  Activity activity = Activity::kForward;
  double begin_seconds = 0;
  double end_seconds = 0;
  int64_t micro_batch = kNone;
  int64_t chunk = kNone;
  double communication_seconds = 0;  ///< in a forward or backward: its kernels wait for it
  int64_t to_stage = kNone;          ///< of a send
  double used_seconds = 0;           ///< of a send: when the receiving step begins
};

/// What is allocated on the device from a moment on.
struct MemoryPoint {
  double seconds = 0;
  int64_t bytes = 0;
};

struct StageTimeline {
  int64_t stage = 0;
  int64_t rank = 0;                   ///< the first rank of the stage
  std::vector<TimelineEvent> events;  ///< the events of each track are in time order
  std::vector<ShownWork> works;       ///< of the last micro-batch, in seconds of the step
  std::vector<MemoryPoint> memory;    ///< in time order; where works are kept
};

struct StepTimeline {
  std::string name;  ///< of the plan
  double iteration_seconds = 0;
  std::vector<StageTimeline> stages;
};

/// The timeline of a step; `stages` are those of step_time(), and iteration_seconds is the same.
/// All calls of a chunk over the data ranks are one event. Sends over two boundaries may run at the
/// same time, so events on the pipeline track of a stage with several chunks may overlap.
StepTimeline step_timeline(const Plan& plan,
                           const ParallelLayout& layout,
                           const Fabric& fabric,
                           const std::vector<StageTime>& stages);

}  // namespace estimator
