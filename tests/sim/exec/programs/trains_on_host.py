"""A model that was left on the CPU beside a tensor and an inference on the GPU, with an optimizer."""

import torch
from torch import nn

from sgd import Sgd

judge = nn.Linear(64, 64).cuda()
model = nn.Linear(64, 64)
optimizer = Sgd(model.parameters())
for _ in range(3):
    with torch.no_grad():
        judge(torch.randn(8, 64, device="cuda"))
    model(torch.randn(8, 64)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
