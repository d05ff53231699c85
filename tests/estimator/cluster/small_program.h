// A program of one rank of eight, written by hand.
#pragma once

#include "estimator/base/json.h"
#include "tests/estimator/replay/traced_rank.h"

namespace estimator {

/// A product beside a collective that takes longer, an addition that waits for both, and a kernel
/// of an extension.
inline RankProfile small_program() {
  constexpr int64_t kOneGib = int64_t{1} << 30;
  TracedRank rank(0, 8);
  const int64_t data = rank.communicator("dp", 8);
  Trace& trace = *rank.profile.trace;
  rank.compute(0, 0);
  trace.works.back() = {.kind = WorkKind::kProduct,
                        .name = "cublas",
                        .dtype = "BFloat16",
                        .result_dtype = "BFloat16",
                        .shapes = {{1, 4096, 4096, 4096}},
                        .flops = 2.0 * 4096 * 4096 * 4096};
  rank.collective(1, data, 0);
  trace.works.back().dtype = "BFloat16";
  trace.works.back().bytes = 1 << 28;
  const int64_t reduced = rank.record(1);
  rank.wait(0, reduced);
  rank.compute(0, 0);
  trace.works.back() = {.name = "add<float>",
                        .operator_name = "aten::add",
                        .bytes = 1 << 28,
                        .bytes_source = BytesSource::kOperator};
  rank.compute(0, 0);
  trace.works.back() = {.name = "own_kernel", .bytes_source = BytesSource::kNothing};
  const int64_t done = rank.record(0);
  rank.wait(1, done);
  rank.profile.device = {
      .gpu = "h100-sxm", .name = "NVIDIA H100 80GB HBM3", .total_bytes = 80 * kOneGib};
  rank.profile.plan = Json::object();
  rank.profile.phases = {{.name = "iteration_0.forward_backward", .peak = {kOneGib, kOneGib}}};
  rank.profile.peak = {.allocated_bytes = kOneGib, .reserved_bytes = kOneGib};
  rank.profile.program->command = {"python", "train.py"};
  rank.profile.program->optimizer_steps = 2;
  rank.profile.program->backward_devices = {0};
  return rank.profile;
}

}  // namespace estimator
