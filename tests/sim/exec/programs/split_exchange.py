"""Counts that an all-to-all with splits exchanges: every other rank is taken to hold what this one holds."""

import torch
import torch.distributed as dist
from torch.distributed._functional_collectives import all_to_all_single

dist.init_process_group("nccl")
rank, ranks = dist.get_rank(), dist.get_world_size()
torch.cuda.set_device(rank % torch.cuda.device_count())
own = torch.tensor([10 * rank + i for i in range(2 * ranks)]).cuda()
from_each = [10 * rank + 2 * rank, 10 * rank + 2 * rank + 1] * ranks

received = torch.empty_like(own)
dist.all_to_all_single(received, own, [2] * ranks, [2] * ranks)
assert received.tolist() == from_each, received

functional = all_to_all_single(own, None, None, group=dist.group.WORLD)
functional = torch.ops._c10d_functional.wait_tensor(functional)
assert functional.view(ranks, -1).sum(dim=1).tolist() == [sum(from_each[:2])] * ranks, functional
print("rank", rank, "has counted", flush=True)
import one_step
