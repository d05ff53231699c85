"""What ranks tell each other that differs from rank to rank: each rank checks what it gets.

With an argument the program stops after that part: "object", "flag" or "silence" (rank 0 says nothing).
"""

import sys

import torch
import torch.distributed as dist

part = sys.argv[1] if len(sys.argv) > 1 else ""
dist.init_process_group("cpu:gloo,cuda:nccl" if part == "" else "nccl")
rank, ranks = dist.get_rank(), dist.get_world_size()
torch.cuda.set_device(rank % torch.cuda.device_count())
before, after = (rank - 1) % ranks, (rank + 1) % ranks


def same_for_all(value, device):
    objects = [value if rank == 0 else None]
    dist.broadcast_object_list(objects, src=0, device=torch.device(device))
    return objects[0]


if part == "silence":
    if rank != 0:
        same_for_all("", "cuda")
elif part == "object":
    assert same_for_all({"run": 17}, "cuda") == {"run": 17}
elif part == "flag":
    flag = torch.tensor([int(rank == 0)], device="cuda")
    dist.broadcast(flag, src=0)
    assert flag.item() == 1
else:
    side = dist.new_group(backend="gloo")
    for device in ("cpu", "cuda"):
        assert same_for_all({"run": 17, "device": device}, device) == {"run": 17, "device": device}
    mine = [None]
    dist.scatter_object_list(mine, [f"for {r}" for r in range(ranks)] if rank == 0 else None, src=0, group=side)
    assert mine == [f"for {rank}"], mine

    # Round in a circle, received before it is sent.
    came, own = (torch.zeros(2, dtype=torch.long, device="cuda") for _ in range(2))
    own += rank
    calls = [dist.P2POp(dist.irecv, came, before), dist.P2POp(dist.isend, own, after)]
    for work in dist.batch_isend_irecv(calls):
        work.wait()
    assert came.tolist() == [before, before], came

    # Down a pipeline: the shape of the next stage's input.
    shape = [None]
    if rank > 0:
        dist.recv_object_list(shape, src=before)
        assert shape == [(2, rank)], shape
    if rank < ranks - 1:
        dist.send_object_list([(2, rank + 1)], dst=after)

    # Over communicators of two ranks each, and sent on as it came.
    lowest = torch.full((1,), 7 - rank, dtype=torch.int32, device="cuda")
    if rank > 0:
        said = torch.zeros_like(lowest)
        dist.recv(said, before)
        lowest = torch.minimum(lowest, said) if rank == ranks - 1 else lowest
    if rank < ranks - 1:
        dist.send(lowest, after)
        dist.recv(lowest, after)
    if rank > 0:
        assert said.item() == 8 - rank, said
        dist.send(lowest, before)
    assert lowest.item() == 8 - ranks, lowest

    # What a kernel computes, no rank knows.
    random = torch.randperm(2, device="cuda")
    dist.broadcast(random, src=0)
    assert random[0].item() == 0

print("rank", rank, "has heard", flush=True)
import one_step
