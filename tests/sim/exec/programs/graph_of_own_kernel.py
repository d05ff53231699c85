"""A kernel of a library is given a tensor: launched alone, and in a CUDA graph whose tensor is free when the graph is
launched."""

import torch

from own_library import launch_with, register
from sgd import Sgd

parameter = torch.nn.Parameter(torch.ones(1, device="cuda"))
optimizer = Sgd([parameter])
alone, in_graph = register("scale_alone", 8), register("scale_in_graph", 8)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    x = torch.empty(1 << 20, device="cuda")
    launch_with(in_graph, x)
    del x
for _ in range(3):
    x = torch.empty(1 << 20, device="cuda")
    launch_with(alone, x)
    graph.replay()
    parameter.sum().backward()
    optimizer.step()
