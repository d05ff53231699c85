"""Steps the groups of one optimizer one after the other, as DeepSpeed does, with sums of their gradients before."""

import torch
import torch.distributed as dist

dist.init_process_group("nccl")
layers = [torch.nn.Linear(64, 64, bias=False).cuda() for _ in range(2)]
optimizer = torch.optim.AdamW([{"params": layer.parameters()} for layer in layers], fused=True)
groups = optimizer.param_groups
for _ in range(8):
    layers[1](layers[0](torch.ones(32, 64, device="cuda"))).sum().backward()
    for layer in layers:
        dist.all_reduce(layer.weight.grad)
    for group in groups:
        optimizer.param_groups = [group]
        optimizer.step()
    optimizer.param_groups = groups
    optimizer.zero_grad()
dist.destroy_process_group()
