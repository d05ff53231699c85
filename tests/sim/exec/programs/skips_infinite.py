"""Steps only where the norm of the gradients, a DTensor, is finite, as verl does; "asks" decides by it beside."""

import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
layer = fully_shard(torch.nn.Linear(64, 64).cuda())
optimizer = torch.optim.AdamW(layer.parameters())
for _ in range(2):
    layer(torch.randn(8, 64, device="cuda")).sum().backward()
    norm = torch.nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
    if not torch.isfinite(norm):
        print("skipped")
        optimizer.zero_grad()
    else:
        optimizer.step()
    if torch.isfinite(norm.full_tensor()).all():
        print("finite")
if "asks" in sys.argv and not (norm.full_tensor() > 0.5 or torch.isfinite(norm)):
    print("asked two things")
dist.destroy_process_group()
