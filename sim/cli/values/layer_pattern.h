// Reads a pattern of layers in the form of Megatron-LM's --moe-layer-freq.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sim {

/// "2" -> [2], "0,1,1" -> [0, 1, 1], and sums, products and lists of Python: "([0]*3+[1]*2)" -> [0,
/// 0, 0, 1, 1]. Throws UserError that names `flag`.
std::vector<int64_t> parse_layer_pattern(const std::string& text, const std::string& flag);

}  // namespace sim
