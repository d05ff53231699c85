#include "models/shard_context.h"

#include <stdexcept>

namespace models {

c10::ScalarType scalar_type(estimator::Dtype dtype) {
  switch (dtype) {
    case estimator::Dtype::kBf16:
      return c10::ScalarType::BFloat16;
    case estimator::Dtype::kFp16:
      return c10::ScalarType::Half;
    case estimator::Dtype::kFp32:
      return c10::ScalarType::Float;
  }
  throw std::logic_error("unknown dtype");
}

std::optional<DataPart> ShardContext::data_part() const {
  if (!plan.parallelism.fully_sharded()) return std::nullopt;
  return DataPart{.ranks = plan.replicas(), .index = groups.data ? groups.data->index() : 0};
}

}  // namespace models
