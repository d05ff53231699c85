#include "sim/cli/cluster/first_that_fits.h"

namespace sim {

FirstThatFits first_that_fits(std::size_t steps,
                              const std::function<FitAnswer(std::size_t step)>& probe) {
  FirstThatFits found{0, probe(0)};
  if (found.answer.fits() || steps == 1) return found;
  std::size_t does_not = 0;
  found = {steps - 1, probe(steps - 1)};
  if (!found.answer.fits()) return found;
  while (found.step - does_not > 1) {
    const std::size_t middle = (found.step + does_not) / 2;
    FitAnswer answer = probe(middle);
    if (answer.fits()) {
      found = {middle, std::move(answer)};
    } else {
      does_not = middle;
    }
  }
  return found;
}

}  // namespace sim
