// What people should know of a plan before they read its numbers.
#pragma once

#include <string>
#include <vector>

#include "estimator/plan/plan.h"

namespace estimator {

/// Each is a sentence that begins with "assumed: " or "warning: ":
///
///   the shape of a model of which only the size was given
///   a sequence longer than the positions of the model (a rule refuses it where they are learned)
///   scores of unfused attention that are more than all else that a layer keeps, 5 a s / h > 34
///   (Korthikanti et al. 2022), and attention that has more than half of the model's FLOPs: both
///   grow with the square of the sequence
///   tied embeddings under DeepSpeed's stage 3, whose parameters stay gathered for longer
///   a gradient that Megatron-LM begins to reduce before deferred products are added to it
///   memory that is given back in each iteration, whose time does not count
///   machines with more GPUs than their NVLink joins
std::vector<std::string> plan_notes(const Plan& plan);

/// What such machines of a resolved cluster are taken to be; "" where NVLink joins all GPUs of one.
std::string machine_beyond_nvlink(const ClusterConfig& cluster);

}  // namespace estimator
