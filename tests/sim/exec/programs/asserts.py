"""Asks what only a kernel would know, and checks it later."""

import torch

noise = torch.randn(8, device="cuda")
is_same = torch.equal(noise, noise.clone())
assert is_same
