"""A model that is never trained; says how much memory its weights take."""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)).cuda()
print("weights", torch.cuda.memory_allocated(), flush=True)
with torch.no_grad():
    for _ in range(3):
        model(torch.randn(32, 512, device="cuda"))
