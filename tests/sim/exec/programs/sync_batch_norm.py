"""Batch norm over all ranks: counts travel beside means that only kernels know."""

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("nccl")
model = nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.LazyLinear(10)).cuda()
model(torch.randn(2, 3, 8, 8, device="cuda"))
model = nn.parallel.DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(model))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    model(torch.randn(2, 3, 8, 8, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
