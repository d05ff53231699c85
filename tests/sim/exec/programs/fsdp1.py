"""FullyShardedDataParallel of the first kind, whose units are flat; all is gathered at the end of
the forward."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
layers = [nn.Linear(1024, 1024, bias=False) for _ in range(4)]
wrap = lambda module: FullyShardedDataParallel(
    module, device_id=torch.cuda.current_device(),
    sharding_strategy=ShardingStrategy.SHARD_GRAD_OP)
model = wrap(nn.Sequential(*[wrap(layer) for layer in layers]))
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    model(torch.randn(8, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
