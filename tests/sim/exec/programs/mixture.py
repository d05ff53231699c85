"""A mixture of 64 experts, one on each rank: the router counts on the device, and the counts size the messages."""

import os

import torch
import torch.distributed as dist
from torch import nn

from sgd import Sgd

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
experts, tokens, width = dist.get_world_size(), 256, 64
router, expert = nn.Linear(width, experts).cuda(), nn.Linear(width, width).cuda()
optimizer = Sgd([*router.parameters(), *expert.parameters()])
for _ in range(2):
    x = torch.randn(tokens, width, device="cuda", requires_grad=True)
    chosen = router(x).topk(2, dim=-1).indices
    counts = torch.zeros(experts, dtype=torch.long, device="cuda")
    counts.scatter_add_(0, chosen.view(-1), torch.ones_like(chosen.view(-1)))
    received = torch.empty_like(counts)
    dist.all_to_all_single(received, counts)
    sends, receives = counts.tolist(), received.tolist()
    routed = torch.cat([x, x])
    mine = torch.empty(sum(receives), width, device="cuda")
    dist.all_to_all_single(mine, routed.detach(), receives, sends)
    (expert(mine).square().mean() + router(x).square().mean()).backward()
    optimizer.step()
    optimizer.zero_grad()
print("sent", sum(sends), "received", sum(receives), flush=True)
dist.destroy_process_group()
