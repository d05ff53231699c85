// Whether a plan can be made of what was imported, and what is said of it.
#pragma once

#include <string>
#include <vector>

#include "estimator/base/json.h"
#include "sim/cli/import/imported_plan.h"

namespace sim {

/// Throws UserError for techniques, unknown keys and open words that `ignored` does not name, and
/// for names in it that nothing in the file has. Returns the lines that say what the estimate
/// leaves out.
std::vector<std::string> accept(const ImportedPlan& plan, const std::vector<std::string>& ignored);

/// Throws one UserError that names all that the plan's tree lacks for an estimate. `has_world`:
/// whether the number of GPUs is given otherwise.
void check_complete(const ImportedPlan& plan, const estimator::Json& tree, bool has_world);

/// "train.sh of Megatron-LM: 31 keys modelled, 40 without effect"; with `verbose` each by name.
std::string import_summary(const ImportedPlan& plan, bool verbose);

}  // namespace sim
