"""Iterations with collectives: one beside other work, one alone, two of a group, and one that the stub answers with a
copy. With "graph" three of five iterations are launches of a CUDA graph."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl", device_id=torch.device("cuda", int(os.environ["LOCAL_RANK"])))
model = nn.Sequential(nn.Linear(256, 512, bias=False), nn.Linear(512, 128, bias=False)).cuda()
first, second = model.parameters()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batch = torch.ones(64, 256, device="cuda")
gathered = torch.empty(dist.get_world_size() * 64, 256, device="cuda")
pair = [torch.ones(1000, device="cuda") for _ in range(2)]


def step():
    for parameter in (first, second):
        parameter.grad.zero_()
    model(batch).square().mean().backward()
    work = dist.all_reduce(first.grad, async_op=True)
    second.grad.mul_(0.5)
    work.wait()
    dist.all_reduce(second.grad)
    with dist._coalescing_manager():
        for tensor in pair:
            dist.all_reduce(tensor)
    dist.all_gather_into_tensor(gathered, batch)
    optimizer.step()


for parameter in (first, second):
    parameter.grad = torch.zeros_like(parameter)
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(2):
        step()
torch.cuda.current_stream().wait_stream(side)
again = step
if "graph" in sys.argv:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    again = graph.replay
for _ in range(3):
    again()
torch.cuda.synchronize()
dist.destroy_process_group()
