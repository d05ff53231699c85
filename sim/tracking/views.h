// PyTorch's operators that `onerank exec` does not observe, and that no recorder counts.
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

namespace sim {

/// Always views: they move no data, take no memory and call nothing but such.
inline constexpr std::string_view kViews[] = {"aten::alias",
                                              "aten::as_strided",
                                              "aten::chunk",
                                              "aten::detach",
                                              "aten::expand",
                                              "aten::narrow",
                                              "aten::permute",
                                              "aten::select",
                                              "aten::slice",
                                              "aten::split",
                                              "aten::split_with_sizes",
                                              "aten::squeeze",
                                              "aten::t",
                                              "aten::transpose",
                                              "aten::unbind",
                                              "aten::unflatten",
                                              "aten::unsqueeze",
                                              "aten::view",
                                              "aten::view_as"};

inline bool is_always_view(std::string_view operator_name) {
  return std::find(std::begin(kViews), std::end(kViews), operator_name) != std::end(kViews);
}

}  // namespace sim
