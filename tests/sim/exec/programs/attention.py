"""Asks for cuDNN's attention before all others, as some trainers do."""

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from sgd import Sgd

q = torch.randn(1, 4, 128, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
optimizer = Sgd([q])
for _ in range(2):
    with sdpa_kernel([SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION], set_priority=True):
        scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()
    optimizer.step()
