"""A rank that srun starts: its number and its world are those of its task."""

import os

import torch
import torch.distributed as dist

from sgd import Sgd

for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
    del os.environ[name]
torch.cuda.set_device(int(os.environ["SLURM_LOCALID"]))
dist.init_process_group("nccl", rank=int(os.environ["SLURM_PROCID"]), world_size=int(os.environ["SLURM_NTASKS"]))
model = torch.nn.Linear(64, 64).cuda()
optimizer = Sgd(model.parameters())
for _ in range(2):
    model(torch.randn(8, 64, device="cuda")).sum().backward()
    dist.all_reduce(model.weight.grad)
    optimizer.step()
dist.destroy_process_group()
