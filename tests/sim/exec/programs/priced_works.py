"""Works whose price follows from how they are asked for: a product of an odd number of tokens and one
of an odd vocabulary, copies from memory that is not page-locked and that is, and collectives of one
NCCL group."""

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import _coalescing_manager

dist.init_process_group("nccl")
ranks = dist.get_world_size()
torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())


def zeros(*shape, **options):
    return torch.zeros(*shape, device="cuda", dtype=torch.bfloat16, **options)


layer = torch.nn.Linear(64, 128, bias=False, device="cuda", dtype=torch.bfloat16)
words = zeros(101, 64)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
pageable = torch.zeros(1 << 20)
locked = torch.zeros(1 << 21).pin_memory()
parts = [zeros(1024) for _ in range(10)]

for step in range(2):
    layer(zeros(31, 64, requires_grad=True)).square().sum().backward()
    zeros(32, 64) @ words.t()
    pageable.to("cuda", non_blocking=True)
    locked.to("cuda", non_blocking=True)
    with _coalescing_manager(device=torch.device("cuda")):
        for part in parts:
            dist.all_reduce(part)
    dist.all_gather([zeros(100 + i) for i in range(ranks)], zeros(100 + dist.get_rank()))
    optimizer.step()
