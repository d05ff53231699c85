"""Compiles a model, or the step of its optimizer, in each of the ways that its arguments name, trains it, and
prints what the compiler made of it: graphs, calls in them, breaks, and torch's own peak."""

import gc
import sys

import torch
from torch import nn
from torch._dynamo.utils import counters
from torch.utils.checkpoint import checkpoint

WIDTH = 256
# Traces and splits as any other, and needs no Triton.
AS = {"backend": "aot_eager"}


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(x)))


class Model(nn.Module):
    def __init__(self, recompute=False):
        super().__init__()
        self.recompute = recompute
        self.layers = nn.ModuleList(Block() for _ in range(2))
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.recompute else layer(x)
        return self.head(x)


class Own(torch.optim.Optimizer):
    """One whose step breaks no graph."""

    def __init__(self, parameters):
        super().__init__(parameters, {})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.add_(parameter.grad, alpha=-1e-3)


def regional(model):
    for layer in model.layers:
        layer.compile(fullgraph=True, **AS)
    return model


def replaced(model):
    model.layers = nn.ModuleList(torch.compile(layer, **AS) for layer in model.layers)
    return model


def broken(model):
    def forward(x):
        x = model.layers[0](x)
        torch._dynamo.graph_break()
        return model.head(model.layers[1](x))

    return torch.compile(forward, **AS)


WAYS = {
    "eager": lambda model: model,
    "lengths": lambda model: torch.compile(model, **AS),
    "whole": lambda model: torch.compile(model, **AS),
    "fullgraph": lambda model: torch.compile(model, fullgraph=True, **AS),
    "in_place": lambda model: model.compile(fullgraph=True, **AS) or model,
    "sequential": lambda model: torch.compile(nn.Sequential(*model.layers, model.head), fullgraph=True, **AS),
    "function": lambda model: torch.compile(lambda x: model(x), fullgraph=True, **AS),
    "regional": regional,
    "replaced": replaced,
    "broken": broken,
    "recompute": lambda model: torch.compile(model, fullgraph=True, **AS),
    "regional_recompute": regional,
}


# Rows of each batch; from the second on the compiler takes their number for one that changes.
ROWS = {"lengths": (96, 160, 128, 192)}

STEPS = {
    "step": lambda optimizer: torch.compile(lambda: optimizer.step(), **AS),
    "bound_step": lambda optimizer: torch.compile(optimizer.step, **AS),
    "own_step": lambda optimizer: torch.compile(lambda: optimizer.step(), fullgraph=True, **AS),
}


def train(way):
    model = Model(recompute="recompute" in way).cuda()
    run = WAYS.get(way, WAYS["eager"])(model)
    optimizer = (Own if "own" in way else torch.optim.AdamW)(model.parameters())
    step = STEPS.get(way, lambda optimizer: optimizer.step)(optimizer)
    for rows in ROWS.get(way, (64, 64, 64)):
        run(torch.randn(rows, WIDTH, device="cuda")).square().mean().backward()
        step()
        optimizer.zero_grad()


for way in sys.argv[1:]:
    torch._dynamo.reset()
    gc.collect()  # the way before, at a time that is not chance
    counters.clear()
    torch.cuda.reset_peak_memory_stats()
    train(way)
    stats = counters["stats"]
    print(way, "graphs", stats["unique_graphs"], "calls", stats["calls_captured"], end=" ")
    print("breaks", sum(counters["graph_break"].values()), end=" ")
    print("peak", torch.cuda.max_memory_allocated(), flush=True)
