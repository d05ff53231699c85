"""A model on the GPU whose weight is updated on the CPU, by three optimizers of a million parameters each."""

import torch
from torch import nn

model = nn.Linear(1024, 1024, bias=False).cuda()
weights = [nn.Parameter(torch.zeros(1024, 1024)) for _ in range(3)]
optimizers = [
    torch.optim.AdamW(weights[:1]),
    torch.optim.AdamW(weights[1:2], fused=True),
    torch.optim.SGD(weights[2:], lr=0.1),
]
for _ in range(2):
    model(torch.ones(8, 1024, device="cuda")).sum().backward()
    for weight in weights:
        weight.grad = model.weight.grad.cpu()
    for optimizer in optimizers:
        optimizer.step()
    with torch.no_grad():
        model.weight.copy_(weights[0])
    model.zero_grad()
