// The rules of plans with multi-latent attention.
#pragma once

#include "estimator/plan/rule_list.h"

namespace estimator {

void check_latent_attention(Rules& rules);

}  // namespace estimator
