"""A program for `onerank exec`: two processes would train this model together."""
import torch
from torch import distributed

distributed.init_process_group("nccl")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64).cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    model(torch.ones(4, 64, device="cuda")).sum().backward()
    optimizer.step()
