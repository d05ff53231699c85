"""Shares memory between ranks, as PyTorch's asynchronous tensor parallelism does, and trains beside it."""

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric_memory

MIB = 2**20
dist.init_process_group("nccl")
rank, world = dist.get_rank(), dist.get_world_size()
torch.cuda.set_device(rank % 8)
available = getattr(symmetric_memory, "is_nvshmem_available", lambda: False)
print("nvshmem", available(), flush=True)
free = torch.cuda.mem_get_info()[0]
group = dist.group.WORLD.group_name
enable = getattr(symmetric_memory, "enable_symm_mem_for_group", None)
if enable:
    enable(group)
shared = symmetric_memory.empty(32 * MIB, device="cuda", dtype=torch.bfloat16)
handle = symmetric_memory.rendezvous(shared, dist.group.WORLD)
print(f"took {(free - torch.cuda.mem_get_info()[0]) // MIB} MiB, {torch.cuda.memory_allocated()} bytes of PyTorch's")
print(f"rank {handle.rank} of {handle.world_size}, multicast {handle.multicast_ptr != 0}", flush=True)

weight = torch.nn.Parameter(torch.zeros(4096, 2048, device="cuda", dtype=torch.bfloat16))
optimizer = torch.optim.SGD([weight], 0.1)
for _ in range(3):
    handle.barrier()
    handle.put_signal((rank + 1) % world, 1)
    handle.wait_signal((rank - 1) % world, 1)
    theirs = handle.get_buffer((rank + 1) % world, (4096, 4096), torch.bfloat16)
    copied = theirs.clone()
    turned = theirs.t().contiguous()
    torch.ops.symm_mem.one_shot_all_reduce(shared, "sum", group)
    torch.ops.symm_mem.two_shot_all_reduce_(shared, "sum", group)
    torch.ops.symm_mem.multimem_all_reduce_(shared, "sum", group)
    shard = torch.zeros(1024, 4096, device="cuda", dtype=torch.bfloat16)
    with torch.no_grad():
        gathered, (product,) = torch.ops.symm_mem.fused_all_gather_matmul(shard, [weight], 0, group)
        scattered = torch.ops.symm_mem.fused_matmul_reduce_scatter(product, weight.t(), "sum", 0, group)
    assert scattered.shape == (1024, 4096) and gathered.shape == (1024 * world, 4096)
    (weight * weight).sum().backward()
    optimizer.step()
