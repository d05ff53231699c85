// How fast the kernels of torch.nn.attention.flex_attention are that torch.compile makes, beside
// those of FlashAttention-2 (data/flex_attention.json).
#pragma once

#include <string>
#include <string_view>

#include "estimator/base/tagged.h"
#include "estimator/compute/attention_rate.h"

namespace estimator {

bool is_flex_attention(std::string_view operator_name);

/// PyTorch's operator of FlashAttention-2, which has its curves (data/attention.json).
std::string flash_attention_like(AttentionPass pass);

/// Their rate over that of FlashAttention-2. It is published for A100 and H100 and those like them;
/// for other GPUs A100's is assumed. Where a mask leaves out blocks the others are as fast as
/// those of a causal mask (assumed).
TaggedNumber flex_attention_share(const std::string& gpu_id, AttentionPass pass);

}  // namespace estimator
