// Finds the flags that a user must type to change keys of a plan.
#pragma once

#include <string>

#include "estimator/resolve/plan_spec.h"

namespace estimator {

/// The flags that write these keys, such as "--tp 4 --dp auto", or `--set KEY=VALUE` for a key
/// without a flag. Text that a shell would split is quoted.
std::string flags_to_type(const PlanEdits& edits);

struct SearchedGpus {
  const char* flag;  ///< "--gpus" or "--max-gpus"
  int64_t number = 0;
};

/// What to type to search for layouts of the same training on other GPUs: "onerank
/// search --model llama3-70b --gpu h100-sxm --gbs 32 --max-gpus 32", with all that was said of the
/// model, the machines, the training and the memory beside the layout. "" where the model has no
/// name of its own, or layouts cannot be composed. `plan` is that of `spec`.
std::string search_to_type(const PlanSpec& spec, const Plan& plan, const SearchedGpus& gpus);

}  // namespace estimator
