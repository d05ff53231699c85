"""Has variables with the names of Python's own functions, as nanoGPT has `compile`."""

import torch

compile = open = exec = print = None

model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters())
for _ in range(2):
    model(torch.ones(8, 64, device="cuda")).mean().backward()
    optimizer.step()
