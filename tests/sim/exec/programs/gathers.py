"""What ranks gather that differs from rank to rank, also in length: each rank prints what it gets."""

import torch
import torch.distributed as dist

dist.init_process_group("nccl")
rank, ranks = dist.get_rank(), dist.get_world_size()
torch.cuda.set_device(rank % torch.cuda.device_count())
side = dist.new_group(backend="gloo")
own = "x" * (10 * rank + 1)

for name, group in (("nccl", None), ("gloo", side)):
    objects = [None] * ranks
    dist.all_gather_object(objects, own, group=group)
    print(rank, name, "objects", [len(text) for text in objects], flush=True)

    device = "cpu" if group else "cuda"
    numbers = torch.zeros(ranks, 2, dtype=torch.long, device=device)
    dist.all_gather_into_tensor(numbers, torch.full((2,), rank, device=device), group=group)
    print(rank, name, "numbers", numbers[:, 1].tolist(), flush=True)

for name, group in (("nccl", None), ("gloo", side)):
    objects = [None] * ranks if rank == 0 else None
    dist.gather_object(own, objects, dst=0, group=group)
    if rank == 0:
        print(rank, name, "rooted", [len(text) for text in objects], flush=True)

lengths = [torch.zeros((), device="cuda") for _ in range(ranks)] if rank == 0 else None
dist.gather(torch.tensor(float(len(own)), device="cuda"), lengths, dst=0)
if rank == 0:
    print(rank, "lengths", [length.item() for length in lengths], flush=True)

# Nobody asks the others for their part of a sum.
total = torch.tensor([rank + 1], device="cuda")
dist.all_reduce(total)
print(rank, "sum", total.item(), flush=True)
import one_step
