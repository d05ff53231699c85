"""Keeps an average of its weights, a module that is never called, and one of lists of tensors."""

import copy

import torch
from sgd import Sgd
from torch import nn

model = nn.Linear(1024, 1024, bias=False).cuda()
average = copy.deepcopy(model).requires_grad_(False)
shadows = [weight.clone() for weight in average.parameters()]
optimizer = Sgd(model.parameters())
for step in range(3):
    model(torch.ones(8, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    for kept, weight in zip(average.parameters(), model.parameters()):
        kept.data.lerp_(weight.data, 0.1)
