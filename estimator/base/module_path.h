// Paths of modules, as PyTorch names them: "layers.12.mlp.linear_fc1".
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "estimator/base/text.h"

namespace estimator {

/// The elements of a path. The number of a list's element stays with the list: "layers.12", "mlp",
/// "linear_fc1".
inline std::vector<std::string> path_elements(const std::string& path) {
  std::vector<std::string> elements;
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const std::string word = path.substr(begin, end - begin);
    if (is_digits(word) && !elements.empty()) {
      elements.back() += "." + word;
    } else {
      elements.push_back(word);
    }
    begin = end + 1;
  }
  return elements;
}

}  // namespace estimator
