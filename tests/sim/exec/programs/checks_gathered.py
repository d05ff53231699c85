"""Fails if ranks gather the same from each other, as a checkpoint does that is saved in parts."""

import torch
import torch.distributed as dist

dist.init_process_group("nccl")
torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
parts = [None] * dist.get_world_size()
dist.all_gather_object(parts, f"part {dist.get_rank()}")
assert len(set(parts)) == len(parts), parts
