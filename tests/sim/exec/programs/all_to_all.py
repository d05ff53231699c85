"""What a mixture of experts sends: equal counts, exchanged first, then the tokens."""

import os

import torch
import torch.distributed as dist
from torch import nn

from sgd import Sgd

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
ranks, tokens = dist.get_world_size(), 16
counts = torch.full((ranks,), tokens, dtype=torch.long).cuda()  # from the host: survives
received = torch.empty_like(counts)
dist.all_to_all_single(received, counts)
assert received.tolist() == [tokens] * ranks, received
model = nn.Linear(64, 64).cuda()
optimizer = Sgd(model.parameters())
for _ in range(2):
    x = model(torch.randn(ranks * tokens, 64, device="cuda"))
    y = torch.empty_like(x)
    dist.all_to_all_single(y, x.detach(), received.tolist(), counts.tolist())
    x.square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
