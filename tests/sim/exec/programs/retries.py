"""Asks for more memory than there is, as a search for the largest batch does, and then trains on less. With `limit`
it allows itself 1 % of the device, and asks for more than that."""

import sys

import torch

if "limit" in sys.argv:
    torch.cuda.set_per_process_memory_fraction(0.01)
    torch.empty(2**30, device="cuda", dtype=torch.uint8)

for gib in (60, 50, 1):
    try:
        blocks = [torch.empty(gib * 2**30, device="cuda", dtype=torch.uint8) for _ in range(2)]
        break
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()

model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    model(torch.zeros(32, 64, device="cuda")).sum().backward()
    optimizer.step()
