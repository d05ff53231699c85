// The types that a plan can train in.
#pragma once

#include <array>
#include <cstdint>

#include "estimator/base/enum_names.h"

namespace estimator {

enum class Dtype { kBf16, kFp16, kFp32 };
constexpr std::array<EnumName<Dtype>, 3> enum_names(Dtype) {
  return {{{Dtype::kBf16, "bf16"}, {Dtype::kFp16, "fp16"}, {Dtype::kFp32, "fp32"}}};
}
constexpr int64_t bytes_per_element(Dtype dtype) { return dtype == Dtype::kFp32 ? 4 : 2; }

}  // namespace estimator
