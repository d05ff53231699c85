// The verdict over the findings of all ranks.
#pragma once

#include "sim/verify/verification.h"

namespace sim {

/// Compares the losses: for each tensor rank, the mean over the data ranks of the last stage with
/// the loss of the whole model. Then sets `equal`, which says whether nothing differs. Reads the
/// losses, the allowed differences of the losses, and the ranks.
void judge(Verification& verification);

}  // namespace sim
