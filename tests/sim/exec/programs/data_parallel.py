"""One process and all devices of its node: torch.nn.DataParallel."""

import torch

from sgd import Sgd

model = torch.nn.DataParallel(torch.nn.Linear(64, 64)).cuda()
optimizer = Sgd(model.parameters())
for _ in range(3):
    model(torch.ones(16, 64, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
