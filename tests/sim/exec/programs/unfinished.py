"""Sums in its second step alone, so that the third one is recorded too, which does not end."""

import torch
import torch.distributed as dist

dist.init_process_group("nccl")
layer = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
values = torch.ones(16, device="cuda")


def forward_and_backward():
    layer(torch.ones(8, 64, device="cuda")).sum().backward()


for step in range(2):
    forward_and_backward()
    if step == 1:
        dist.all_reduce(values)
    optimizer.step()
forward_and_backward()
dist.broadcast(values, 0)
dist.destroy_process_group()
