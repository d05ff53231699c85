// What an import says of the techniques that a file uses.
#pragma once

#include <string>
#include <vector>

#include "sim/cli/import/imported_plan.h"

namespace sim {

inline std::vector<std::string> names_of_techniques(const ImportedPlan& plan) {
  std::vector<std::string> names;
  for (const UsedTechnique& used : plan.techniques) names.push_back(used.technique->name);
  return names;
}

}  // namespace sim
