"""Saves what is sharded after its first step, and reads it again, from the folder that is given."""

import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from torch.distributed.fsdp import fully_shard

dist.init_process_group("nccl")
torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
model = torch.nn.Linear(64, 64, device="cuda")
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters())
for step in range(2):
    model(torch.randn(8, 64, device="cuda")).sum().backward()
    optimizer.step()
    if step == 0:
        checkpoint.save(model.state_dict(), checkpoint_id=sys.argv[1])
        checkpoint.load(model.state_dict(), checkpoint_id=sys.argv[1])
        print("read", flush=True)
