#include "models/shard/delayed_gradients.h"

#include <c10/core/GradMode.h>

#include <deque>

#include "estimator/base/module_path.h"

namespace models {

void run_delayed(std::vector<DelayedGradients::Product> products, Observer& observer) {
  const c10::NoGradGuard no_grad;
  for (DelayedGradients::Product& product : products) {
    std::deque<ModuleScope> scopes;
    for (const std::string& element : estimator::path_elements(product.module)) {
      scopes.emplace_back(observer, element);
    }
    product.run();
    product.run = nullptr;
    while (!scopes.empty()) scopes.pop_back();
  }
}

}  // namespace models
