"""Steps each parameter's own optimizer as soon as its gradient is there."""

import sys

import torch
from torch.utils.checkpoint import checkpoint

reentrant = "reentrant" in sys.argv
layers = [torch.nn.Linear(512, 512, bias=False).cuda() for _ in range(8)]
optimizers = {}


def step(parameter):
    optimizers[parameter].step()
    optimizers[parameter].zero_grad()


for layer in layers:
    optimizers[layer.weight] = torch.optim.SGD([layer.weight])
    layer.weight.register_post_accumulate_grad_hook(step)

for number in range(9):
    hidden = torch.ones(4, 512, device="cuda", requires_grad=reentrant)
    for layer in layers:
        hidden = checkpoint(layer, hidden, use_reentrant=True) if reentrant else layer(hidden)
    hidden.mean().backward()
    print("step", number, flush=True)
