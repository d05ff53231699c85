// A sink (gpt-oss): a learned number of each head, which is among the scores of every query, and
// whose value is zero. cuDNN's kernel takes it as TransformerEngine's softmax_offset and keeps it;
// here the kernel without it runs, and what it has found is corrected.
#pragma once

#include <ATen/core/Tensor.h>

#include "models/attention/attention_kernel.h"

namespace models {

/// The same of a softmax that also has `sink`, fp32 [heads].
void add_sink(Attended& attended, const at::Tensor& sink, const AttentionCall& call);

/// The gradient of the sink, fp32 [heads]. `attended` has it already.
at::Tensor sink_gradient(const at::Tensor& output_gradient,
                         const Attended& attended,
                         const at::Tensor& sink,
                         const AttentionCall& call);

}  // namespace models
