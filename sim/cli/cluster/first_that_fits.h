// A search over steps that save more memory the further they go.
#pragma once

#include <cstddef>
#include <functional>

#include "sim/cli/cluster/fit_probe.h"

namespace sim {

struct FirstThatFits {
  std::size_t step = 0;
  FitAnswer answer;
};

/// The first of `steps` (at least one) that surely fits, with its answer; the last and its answer
/// where none does. The first step is tried, then the last, then it is bisected between them. Of a
/// step after one that fits it is taken that it fits as well.
FirstThatFits first_that_fits(std::size_t steps,
                              const std::function<FitAnswer(std::size_t step)>& probe);

}  // namespace sim
