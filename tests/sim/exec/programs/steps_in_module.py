"""A module trains itself when it is called, as Lightning's manual optimization does."""

import torch

from sgd import Sgd


class TrainsItself(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(64, 64, bias=False)
        self.optimizer = Sgd(list(self.inner.parameters()))

    def forward(self, x):
        self.inner(x).sum().backward()
        self.optimizer.step()
        self.optimizer.zero_grad()


model = TrainsItself().cuda()
for _ in range(2):
    model(torch.zeros(8, 64, device="cuda"))
