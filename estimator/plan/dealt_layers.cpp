#include "estimator/plan/dealt_layers.h"

#include <algorithm>

namespace estimator {

std::vector<int64_t> dealt_layers(const DealtLayers& dealt) {
  const int64_t counted = dealt.layers + dealt.first_counts + dealt.last_counts;
  const int64_t least = std::max({int64_t{1}, dealt.first_counts, dealt.last_counts});
  if (dealt.pieces < 2 || counted / dealt.pieces < least) return {};
  std::vector<int64_t> layers;
  for (int64_t piece = 0; piece < dealt.pieces; ++piece) {
    layers.push_back(counted / dealt.pieces + (piece < counted % dealt.pieces ? 1 : 0));
  }
  layers.front() -= dealt.first_counts;
  layers.back() -= dealt.last_counts;
  return layers;
}

}  // namespace estimator
