"""No ranks: two layers and three steps. Prints what torch itself says of its memory."""

import os

import torch
from torch import nn

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))

model = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    loss = model(torch.randn(32, 512, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print("step", step, flush=True)
print("allocated", torch.cuda.max_memory_allocated())
print("requested", torch.cuda.memory_stats()["requested_bytes.all.peak"])
print("segments", torch.cuda.memory_stats()["segment.all.peak"])
print("reserved", torch.cuda.max_memory_reserved())
