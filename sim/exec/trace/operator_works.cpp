#include "sim/exec/trace/operator_works.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "estimator/base/contains.h"

namespace sim {
namespace {

using estimator::TraceWork;
using estimator::WorkKind;

/// Kernels of attention and of products that are not cuBLAS's. Those beside them only prepare.
bool multiplies(std::string_view name) {
  const std::string_view kernel = name.substr(0, name.find('<'));
  constexpr std::string_view kParts[] = {
      "flash_fwd", "flash_bwd_dq", "fmha", "attention_kernel", "gemm", "cutlass"};
  return std::any_of(std::begin(kParts), std::end(kParts), [&](std::string_view part) {
    return kernel.find(part) != kernel.npos;
  });
}

std::vector<const TracedLaunch*> multiplying(const std::vector<TracedLaunch>& launches) {
  std::vector<const TracedLaunch*> found;
  for (const TracedLaunch& launch : launches) {
    if (multiplies(launch.name)) found.push_back(&launch);
  }
  if (found.empty()) {
    found.push_back(&*std::max_element(
        launches.begin(), launches.end(), [](const TracedLaunch& a, const TracedLaunch& b) {
          return a.threads < b.threads;
        }));
  }
  return found;
}

/// What it moved of `ended`, and none of its FLOPs.
TraceWork part_of(const TracedOperator& ended, const TracedLaunch& launch, double share) {
  const OperatorCall& call = ended.call;
  return {.kind = WorkKind::kKernel,
          .name = launch.name,
          .operator_name = call.op->name,
          .dtype = c10::toString(call.dtype),
          .other_dtype = other_dtype_name(call),
          .is_strided = call.is_strided,
          .shapes = shapes_of(call),
          .bytes = static_cast<int64_t>(share * static_cast<double>(call.bytes)),
          .peer_bytes = static_cast<int64_t>(share * static_cast<double>(ended.peer_bytes)),
          .threads = static_cast<int64_t>(launch.threads),
          .bytes_source = estimator::BytesSource::kOperator,
          .is_misaligned = call.is_misaligned,
          .has_mask = ended.has_mask,
          .has_dropout = ended.has_dropout};
}

}  // namespace

void read_extras(c10::ArrayRef<c10::IValue> inputs, TracedOperator& running) {
  const OperatorTraits& op = *running.call.op;
  const auto given = [&](int argument) { return argument >= 0 && !inputs[argument].isNone(); };
  running.has_mask = given(op.mask_argument) && inputs[op.mask_argument].isTensor() &&
                     inputs[op.mask_argument].toTensor().defined();
  running.has_dropout = given(op.dropout_argument) && inputs[op.dropout_argument].isDouble() &&
                        inputs[op.dropout_argument].toDouble() > 0;
}

std::vector<TraceWork> works_of(const TracedOperator& ended) {
  double threads = 0;
  for (const TracedLaunch& launch : ended.launches) threads += static_cast<double>(launch.threads);
  const bool is_product = ended.call.op->flops != FlopRule::kOutputElements && !ended.multiplied;
  const auto main = is_product ? multiplying(ended.launches) : std::vector<const TracedLaunch*>();
  std::vector<TraceWork> works;
  for (const TracedLaunch& launch : ended.launches) {
    const double share = threads == 0 ? 0 : static_cast<double>(launch.threads) / threads;
    works.push_back(part_of(ended, launch, share));
    if (!estimator::contains(main, &launch)) continue;
    works.back().flops = ended.call.flops / static_cast<double>(main.size());
    works.back().has_unknown_lengths = ended.call.has_unknown_lengths;
  }
  return works;
}

}  // namespace sim
