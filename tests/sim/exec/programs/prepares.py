"""Ranks that use what rank 0 prepares: before a barrier ("file"), or under a key of a store ("key",
"poll"). With "alone" rank 0 prepares nothing, and the others wait for it."""

import os
import sys
import time

import torch
import torch.distributed as dist

part, path = sys.argv[1:]
rank = int(os.environ["RANK"])
dist.init_process_group("gloo" if part == "gloo" else "nccl")
torch.cuda.set_device(rank % torch.cuda.device_count())
used = torch.ones(1, device="cuda")
store = dist.TCPStore("127.0.0.1", 29999, is_master=rank == 0)


def wait_for(found):
    while not found():
        time.sleep(0.5)


if part in ("file", "gloo"):
    if rank == 0:
        time.sleep(1)
        with open(path, "w") as file:
            file.write("prepared")
    dist.barrier()
    assert open(path).read() == "prepared"
elif part == "key":
    if rank == 0:
        store.set("address", "here")
    assert store.get("address") == b"here"
elif part == "poll":
    if rank == 0:
        store.set("ready", "yes")
    wait_for(lambda: store.check(["ready"]))
else:
    wait_for(lambda: rank == 0 or os.path.exists(path))

print("rank", rank, "goes on", flush=True)
import one_step
