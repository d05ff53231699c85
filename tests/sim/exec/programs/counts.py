"""A router that counts on the device: the tokens of each expert are not known here."""

import torch

scores = torch.rand(64, 8, device="cuda")
expert = scores.argmax(dim=1)
counts = torch.zeros(8, dtype=torch.long, device="cuda").scatter_add_(0, expert, torch.ones_like(expert))
print(counts.tolist(), flush=True)

import one_step
