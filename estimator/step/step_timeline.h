// A step as it runs: what every stage does when. For traces and pictures; step_time() adds the same
// things up.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "estimator/step/step_time.h"

namespace estimator {

/// Tracks of one stage: its GPU's compute, its sends to other stages, its calls over the data
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
  double communication_seconds = 0;  ///< of a forward or backward: what its kernels wait for
  int64_t to_stage = kNone;          ///< of a send
  double used_seconds = 0;           ///< of a send: when the step that it is for begins there
};

struct StageTimeline {
  int64_t stage = 0;
  int64_t rank = 0;                   ///< the stage's first
  std::vector<TimelineEvent> events;  ///< those of a track in time order
};

struct StepTimeline {
  std::string name;  ///< of the plan
  double iteration_seconds = 0;
  std::vector<StageTimeline> stages;
};

/// `stages` as for step_time(), whose iteration_seconds it shares. A chunk's calls over the data
/// ranks are one event. Sends of two boundaries run side by side, so a stage's pipeline track may
/// overlap itself where it has chunks.
StepTimeline step_timeline(const Plan& plan,
                           const ParallelLayout& layout,
                           const Fabric& fabric,
                           const std::vector<StageTime>& stages);

}  // namespace estimator
