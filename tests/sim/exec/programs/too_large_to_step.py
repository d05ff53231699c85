"""Weights and gradients of 30 GiB each fit in 79 GiB; the optimizer's moments do not."""

import torch
from torch import nn

torch.set_default_device("cuda")
layers = nn.Sequential(*[nn.Linear(16384, 16384, bias=False) for _ in range(30)])
optimizer = torch.optim.AdamW(layers.parameters(), foreach=True)
for _ in range(2):
    layers(torch.randn(4, 16384)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
