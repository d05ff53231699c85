#include "models/shard/delayed_gradients.h"

#include <c10/core/GradMode.h>

#include <deque>

#include "estimator/base/text.h"

namespace models {
namespace {

/// "layers.3.mlp" -> "layers.3", "mlp"
std::vector<std::string> elements_of(const std::string& path) {
  std::vector<std::string> elements;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    if (estimator::is_digits(part) && !elements.empty()) {
      elements.back() += "." + part;
    } else {
      elements.push_back(part);
    }
    begin = end + 1;
  }
  return elements;
}

}  // namespace

void run_delayed(std::vector<DelayedGradients::Product> products, Observer& observer) {
  const c10::NoGradGuard no_grad;
  for (DelayedGradients::Product& product : products) {
    std::deque<ModuleScope> scopes;
    for (const std::string& element : elements_of(product.module)) {
      scopes.emplace_back(observer, element);
    }
    product.run();
    product.run = nullptr;
    while (!scopes.empty()) scopes.pop_back();
  }
}

}  // namespace models
