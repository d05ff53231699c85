// contains(): whether a list holds a value.
#pragma once

#include <algorithm>
#include <vector>

namespace estimator {

template <class T>
bool contains(const std::vector<T>& values, const T& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace estimator
