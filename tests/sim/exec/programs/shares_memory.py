"""Shares memory between ranks, as PyTorch's asynchronous tensor parallelism does."""

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric_memory

dist.init_process_group("nccl")
torch.cuda.set_device(dist.get_rank())
print("nvshmem", symmetric_memory.is_nvshmem_available(), flush=True)
shared = symmetric_memory.empty(2**20, device="cuda")
symmetric_memory.rendezvous(shared, dist.group.WORLD)
