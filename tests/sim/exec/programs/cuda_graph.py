"""Iterations as a CUDA graph, as torch.cuda.graph's documentation writes them; with `whole` the step of the optimizer
is in the graph, and in the iterations before it."""

import sys

import torch

is_whole = "whole" in sys.argv

model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 16)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
static_input = torch.randn(64, 256, device="cuda")
static_target = torch.randn(64, 16, device="cuda")


def backward():
    optimizer.zero_grad(set_to_none=True)
    torch.nn.functional.mse_loss(model(static_input), static_target).backward()


side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        backward()
        if is_whole:
            optimizer.step()
torch.cuda.current_stream().wait_stream(side)

graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    backward()
    if is_whole:
        optimizer.step()
before = torch.cuda.memory_allocated()
for _ in range(4):
    static_input.copy_(torch.randn(64, 256, device="cuda"))
    graph.replay()
    if not is_whole:
        optimizer.step()
print("grew", torch.cuda.memory_allocated() - before, flush=True)
