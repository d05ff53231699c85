"""Saves after each of two steps, to files whose names begin with what is given."""

import sys

import torch
from torch import save

model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(2):
    model(torch.randn(8, 64, device="cuda")).sum().backward()
    optimizer.step()
    print("stepped", step, flush=True)
    save(model.state_dict(), f"{sys.argv[1]}-{step}.pt")
    print("saved", step, flush=True)
