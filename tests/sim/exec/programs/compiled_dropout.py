"""Compiled code that draws random numbers in several kernels of one kind: each is told at which place
of the stream of random numbers it begins."""
import torch
import torch.nn.functional as F

weight = torch.nn.Parameter(torch.ones(1 << 20, device="cuda"))


@torch.compile
def dropped(values):
    for _ in range(4):
        values = F.dropout(torch.mm(values.view(1024, 1024), values.view(1024, 1024)).view(-1))
    return values


optimizer = torch.optim.SGD([weight], lr=0.1)
for step in range(3):
    dropped(weight).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
