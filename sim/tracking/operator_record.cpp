#include "sim/tracking/operator_record.h"

#include <utility>

namespace sim {

estimator::OperatorRecord operator_record(const OperatorCall& call,
                                          std::string phase,
                                          int64_t count) {
  return {.name = call.op->name,
          .shapes = shapes_of(call),
          .dtype = c10::toString(call.dtype),
          .other_dtype = other_dtype_name(call),
          .is_strided = call.is_strided,
          .flops = call.flops,
          .bytes = static_cast<double>(call.bytes),
          .phase = std::move(phase),
          .direction = call.direction,
          .module_kind = estimator::to_string(call.module_kind),
          .chunk = call.chunk,
          .count = count,
          .executed_count = count};
}

}  // namespace sim
