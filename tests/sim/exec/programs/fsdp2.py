"""fully_shard over all ranks, as FSDP2, and as HSDP when the program is given `hsdp`."""

import sys

import os

import torch
import torch.distributed as dist
from torch import nn

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

dist.init_process_group("nccl")
shape = (dist.get_world_size() // 8, 8) if "hsdp" in sys.argv else (dist.get_world_size(),)
mesh = init_device_mesh("cuda", shape, mesh_dim_names=("replicate", "shard")[-len(shape):])
model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)).cuda()
for layer in model:
    fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)

optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(2):
    model(torch.randn(8, 64, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
