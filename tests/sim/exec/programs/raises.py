"""Fails inside a module that is called by another."""

import torch


class Raises(torch.nn.Module):
    def forward(self, x):
        raise ValueError("broken on purpose")


torch.nn.Sequential(Raises()).cuda()(torch.ones(1, device="cuda"))
