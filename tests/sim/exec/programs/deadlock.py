"""Rank 0 reduces over the world first and over a second group of all ranks then, the others the other way round:
on GPUs they would wait for each other for ever."""

import os

import torch
import torch.distributed as dist

from sgd import Sgd

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
second = dist.new_group()
weight = torch.nn.Parameter(torch.zeros(64, device="cuda"))
optimizer = Sgd([weight])
for _ in range(3):
    weight.square().sum().backward()
    groups = [dist.group.WORLD, second]
    for group in groups if dist.get_rank() == 0 else reversed(groups):
        dist.all_reduce(weight.grad, group=group)
        weight.grad.mul_(0.5)
    optimizer.step()
    optimizer.zero_grad()
