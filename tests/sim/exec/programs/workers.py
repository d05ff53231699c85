"""Data loading in forked processes, which end by themselves and have no profile."""

import torch
from torch.utils.data import DataLoader

from sgd import Sgd

model = torch.nn.Linear(4, 4).cuda()
optimizer = Sgd(model.parameters())
for batch in DataLoader(torch.ones(8, 4), batch_size=4, num_workers=2, pin_memory=True):
    model(batch.cuda(non_blocking=True)).sum().backward()
    optimizer.step()
print("done", flush=True)
