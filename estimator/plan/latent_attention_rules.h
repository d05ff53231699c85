// What a plan with multi-latent attention must keep to.
#pragma once

#include "estimator/plan/rule_list.h"

namespace estimator {

void check_latent_attention(Rules& rules);

}  // namespace estimator
