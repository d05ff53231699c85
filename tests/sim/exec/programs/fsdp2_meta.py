"""FSDP2 of a model that was made on the meta device. Its first random numbers make torch broadcast the state of the
generator, inside an operator on a DTensor."""

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

dist.init_process_group("nccl")
torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
torch.manual_seed(0)
with torch.device("meta"):
    model = torch.nn.Linear(64, 64)
fully_shard(model)
model.to_empty(device="cuda")
model.reset_parameters()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.ones(1, 64, device="cuda")).sum().backward()
optimizer.step()
