// The options of failures and checkpoints; see options.h.
#pragma once

#include "estimator/base/option.h"
#include "estimator/plan/plan.h"

namespace estimator {

template <class Visitor>
void visit_fields(Visitor& visit, ReliabilityConfig& reliability) {
  visit("gpu_hours_between_failures",
        reliability.gpu_hours_between_failures,
        {"mean time between failures of the job x number of its GPUs, in hours; auto: Llama 3's",
         Range{1e-3, 1e12},
         {ours({"--gpu-hours-between-failures"})}});
  visit("restart_seconds",
        reliability.restart_seconds,
        {"seconds from a failure to training again: detect, restart, load",
         Range{1e-3, kSeconds.most},
         {ours({"--restart-seconds"})}});
  visit("checkpoint_seconds",
        reliability.checkpoint_seconds,
        {"seconds that training stands still for one checkpoint",
         Range{1e-3, kSeconds.most},
         {ours({"--checkpoint-seconds"})}});
  visit("save_interval",
        reliability.save_interval,
        {"steps between checkpoints; auto: Daly's best",
         Range{1, kLargestWhole},
         {{"--save-interval"}}});
}

}  // namespace estimator
