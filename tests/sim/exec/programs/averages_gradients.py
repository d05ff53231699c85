"""Data parallelism by hand: averages gradients as PyTorch's tutorial "Writing Distributed Applications" does, after two
micro-batches, and clips them. Before them two models are asked that nobody trains, one of them frozen, and the model is
evaluated. With "functional" the program has no modules, and does neither."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(512, 64)
        self.middle = nn.Linear(64, 64, bias=False)
        self.head = nn.Linear(64, 512, bias=False)

    def forward(self, tokens):
        return self.head(self.middle(self.embedding(tokens)))


def without_modules(tokens):
    words, middle, head = model.parameters()
    return functional.embedding(tokens, words) @ middle.t() @ head.t()


is_functional = "functional" in sys.argv
model, frozen, untrained = Model().cuda(), Model().cuda().requires_grad_(False), Model().cuda()
forward = without_modules if is_functional else model
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    tokens = torch.zeros(2, 128, dtype=torch.long, device="cuda")
    if not is_functional:
        with torch.no_grad():
            frozen(tokens)
            untrained(tokens)
            model(tokens)
    for _ in range(2):
        forward(tokens).square().mean().backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
