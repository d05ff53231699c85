"""Layers on two devices of one process. With the argument "teacher", those of the second are not trained,
and tell the others what to be."""

import sys

import torch
from torch import nn

from sgd import Sgd

is_taught = sys.argv[1:] == ["teacher"]
first, second = nn.Linear(256, 256).to("cuda:0"), nn.Linear(256, 64).to("cuda:1")
optimizer = Sgd(first.parameters() if is_taught else [*first.parameters(), *second.parameters()])
for _ in range(3):
    x = torch.ones(16, 256, device="cuda:0")
    if is_taught:
        with torch.no_grad():
            wanted = second(x.to("cuda:1")).mean().to("cuda:0")
        (first(x).mean() - wanted).square().backward()
    else:
        second(first(x).to("cuda:1")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
