"""Attention over sequences of 96 and 32 tokens, one behind the other, of which one says that it may be 1,024 long; with
`unknown` only a kernel knows where they end."""

import sys

import torch
from torch.nn.attention.varlen import varlen_attn

from sgd import Sgd

HEADS, WIDTH = 2, 64

parameter = torch.nn.Parameter(torch.ones(1, device="cuda", dtype=torch.bfloat16))
optimizer = Sgd([parameter])
ends = torch.tensor([0, 96, 128], dtype=torch.int32).cuda()
if "unknown" in sys.argv:
    ends = ends + torch.randn(3, device="cuda").int()
x = torch.zeros(128, HEADS, WIDTH, device="cuda", dtype=torch.bfloat16)
for _ in range(2):
    queries = x * parameter
    varlen_attn(queries, x, x, ends, ends, 1024, 1024).sum().backward()
    optimizer.step()
