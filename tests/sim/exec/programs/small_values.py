"""Values that the host sends through the device and the network, and that must come back."""

import os

import torch
import torch.distributed as dist
from torch import nn

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
ranks, rank = dist.get_world_size(), dist.get_rank()

flags = torch.tensor([3, 1, 4], dtype=torch.long).cuda()
dist.broadcast(flags, src=0)
assert flags.tolist() == [3, 1, 4], flags

count = torch.tensor([5.0]).cuda()
dist.all_reduce(count)
assert count.item() == 5.0 * ranks, count

gathered = [None] * ranks
dist.all_gather_object(gathered, {"rank": rank, "name": "x"})
assert gathered == [{"rank": rank, "name": "x"}] * ranks, gathered

changed = torch.tensor([7]).cuda()
changed += 1  # a kernel, of values that the host knows
assert changed.item() == 8, changed
assert torch.zeros(3, device="cuda").sum().item() == 0
assert (torch.arange(6, device="cuda").view(2, 3).t() * 1).sum(dim=1).tolist() == [3, 5, 7]

random = torch.rand(2, device="cuda")
total = random.sum()
assert total.item() == 0.0, total  # nobody knows: invented, and listed
changed.copy_(random[:1])
assert changed.item() == 0, changed  # not what it was

side = dist.new_group(backend="gloo")  # on the CPU
on_host = torch.tensor([2])
dist.all_reduce(on_host, group=side)
assert on_host.item() == 2 * ranks, on_host
print("all came back", flush=True)
dist.destroy_process_group()

import one_step
