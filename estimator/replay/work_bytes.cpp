#include "estimator/replay/work_bytes.h"

#include <algorithm>

namespace estimator {

int64_t bytes_of_element(std::string_view dtype) {
  if (dtype == "ComplexDouble") return 16;
  if (dtype == "Double" || dtype == "Long" || dtype == "ComplexFloat") return 8;
  if (dtype == "Float" || dtype == "Int") return 4;
  if (dtype == "BFloat16" || dtype == "Half") return 2;
  return 1;
}

double moved_bytes(const TraceWork& work) {
  const bool is_told = work.kind != WorkKind::kProduct || work.bytes > 0;
  if (is_told) return static_cast<double>(work.bytes);
  double sizes[4] = {};  // batch, m, n, k
  for (std::size_t i = 0; i < 4; ++i) {
    sizes[i] = static_cast<double>(std::max<int64_t>(1, work.shapes.front()[i]));
  }
  const auto [batch, m, n, k] = sizes;
  const auto element = static_cast<double>(bytes_of_element(work.dtype));
  const auto result = static_cast<double>(bytes_of_element(work.result_dtype));
  return batch * ((m * k + k * n) * element + m * n * (work.accumulates ? 2 : 1) * result);
}

}  // namespace estimator
