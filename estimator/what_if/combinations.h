// All ways to take one of each of several lists.
#pragma once

#include <vector>

namespace estimator {

/// One choice of each list, in their order; those of the last list change fastest.
template <class Choice>
std::vector<std::vector<Choice>> combinations(const std::vector<std::vector<Choice>>& lists) {
  std::vector<std::vector<Choice>> all = {{}};
  for (const std::vector<Choice>& list : lists) {
    std::vector<std::vector<Choice>> longer;
    longer.reserve(all.size() * list.size());
    for (const std::vector<Choice>& begun : all) {
      for (const Choice& choice : list) {
        longer.push_back(begun);
        longer.back().push_back(choice);
      }
    }
    all = std::move(longer);
  }
  return all;
}

}  // namespace estimator
