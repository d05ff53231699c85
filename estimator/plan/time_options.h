// The options of the time of a step; see options.h.
#pragma once

#include "estimator/base/option.h"
#include "estimator/plan/plan.h"

namespace estimator {

template <class Visitor>
void visit_fields(Visitor& visit, TimeConfig& time) {
  visit("calibration",
        time.calibration,
        "file of `onerank calibrate`, whose rates are used for kernels");
  visit("launch_blocking",
        time.launch_blocking,
        "CUDA_LAUNCH_BLOCKING=1 of the job: the host waits for every kernel");
  visit(
      "data_loading_seconds",
      time.data_loading_seconds,
      {"seconds that a rank's data loader takes for one micro-batch, with all its workers; it "
       "works ahead, so a step waits only if loading its micro-batches takes longer than the step",
       Range{0, 1e6}});
  visit("cpu_adam_parameters_per_second",
        time.cpu_adam_parameters_per_second,
        {"parameters that the CPUs of one machine update together in a second, with "
         "--optimizer-cpu-offload; auto: a published value",
         Range{1, 1e15}});
}

}  // namespace estimator
