// The example plans that come with Onerank: commands take their names where they take a plan.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "estimator/base/option.h"

namespace sim {

/// One example, and what it trains where.
struct ExamplePlan {
  std::string name;
  std::string model;
  int64_t gpus = 0;
  std::string gpu;
  std::string parallelism;  ///< "tensor 8 x pipeline 16 x context 1 x data 128"
  std::string framework;
};
template <class Visitor>
void visit_fields(Visitor& visit, ExamplePlan& plan) {
  visit("name", plan.name, "as commands take it");
  visit("model", plan.model, "what is trained");
  visit("gpus", plan.gpus, "how many there are");
  visit("gpu", plan.gpu, "their name");
  visit("parallelism", plan.parallelism, "the sizes of the groups");
  visit("framework", plan.framework, "whose training is meant");
}

/// All of them, by name.
std::vector<ExamplePlan> example_plans();

/// The file of the example with this name; "" when there is none.
std::string find_example_plan(const std::string& name);

}  // namespace sim
