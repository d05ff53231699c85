"""Uses the devices of the numbers that it is given, whichever LOCAL_RANK says: more on each, and trains on the
last. Before, it asks what lies on any device."""

import sys

import torch

torch.cuda.memory_snapshot()
for place, device in enumerate(sys.argv[1:]):
    width = 256 << place
    model = torch.nn.Linear(width, width).to(f"cuda:{device}")
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    model(torch.randn(8, width, device=f"cuda:{device}")).sum().backward()
    optimizer.step()
