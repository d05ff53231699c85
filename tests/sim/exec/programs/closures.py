"""Computes the loss inside the optimizer's step, as PyTorch Lightning does."""

import torch

model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters())


def closure():
    optimizer.zero_grad()
    loss = model(torch.ones(8, 64, device="cuda")).mean()
    loss.backward()
    return loss


for step in range(9):
    optimizer.step(closure) if step % 2 else optimizer.step(closure=closure)
    print("step", step, flush=True)
