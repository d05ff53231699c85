// What the findings of all ranks come to.
#pragma once

#include "sim/verify/verification.h"

namespace sim {

/// Compares the losses: the mean over the data ranks of the last stage, for each tensor rank, with
/// the whole model's. Then says whether nothing differs. Reads losses, what they may
/// differ by, and ranks.
void judge(Verification& verification);

}  // namespace sim
