"""Reads what only a kernel would know, and then fails for another reason."""

import sys

import torch


class Broken(torch.utils.data.Dataset):
    def __len__(self):
        return 1

    def __getitem__(self, place):
        raise ValueError("broken on purpose")


noise = torch.randn(8, device="cuda")
torch.equal(noise, noise.clone())
if sys.argv[1] == "worker":
    next(iter(torch.utils.data.DataLoader(Broken(), num_workers=1)))
import no_such_module
