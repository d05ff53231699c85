"""Calls cuDNN's attention with a causal mask, with a tensor as mask, and with dropout."""

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from sgd import Sgd

q = torch.randn(1, 4, 128, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
mask = torch.zeros(1, 1, 128, 128, device="cuda", dtype=torch.bfloat16)
optimizer = Sgd([q])
for _ in range(2):
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        for extras in ({"is_causal": True}, {"attn_mask": mask}, {"dropout_p": 0.1}):
            scaled_dot_product_attention(q, q, q, **extras).sum().backward()
    optimizer.step()
