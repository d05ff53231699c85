"""Trains with a data loader whose samples take longer to make than a step, and sleeps: usage: sleeps.py
[SECONDS]: in each iteration, and for each sample."""
import sys
import time

import torch

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 0


class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, _):
        time.sleep(SECONDS)
        return torch.zeros(64)


model = torch.nn.Linear(64, 64, device="cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in torch.utils.data.DataLoader(Samples(), batch_size=4):
    model(batch.cuda()).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    time.sleep(SECONDS)
