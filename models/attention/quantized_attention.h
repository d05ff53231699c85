// Attention by cuDNN's kernels for MXFP8 (--fp8-dot-product-attention; FusedAttnFunc in
// transformer_engine/pytorch/attention/dot_product_attention/backends.py of 2.17). Query, key and
// value are cast both ways, along the heads' widths and along the sequence, and are kept so; the
// output is in 16 bits, and is kept, too. Scales are put into the order [b, heads, s], and then
// into that in which the kernel reads them. Nothing is computed here: this is for the virtual GPU.
#pragma once

#include <ATen/core/Tensor.h>

#include "models/shard/quantized.h"

namespace models {

/// As CoreAttention::forward().
at::Tensor quantized_attention(const at::Tensor& query,
                               const at::Tensor& key,
                               const at::Tensor& value,
                               const QuantizedProducts& products);

}  // namespace models
