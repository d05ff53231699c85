"""Checks what only kernels would know, as programs and libraries do; with "asks" it decides by it."""

import sys

import torch

layer = torch.nn.Linear(4, 4).cuda()
optimizer = torch.optim.Adam(layer.parameters())
for _ in range(2):
    size = layer(torch.randn(8, 4, device="cuda")).sigmoid()
    assert (size >= 0).all(), "some are negative"
    assert not torch.isnan(size).any()
    assert torch.isnan(size).any().item() is False
    if not torch.isfinite(size).all().item():
        raise ValueError("some are infinite")
    chance = torch.distributions.Categorical(logits=size)
    chance.log_prob(chance.sample()).mean().backward()
    optimizer.step()
if "asks" in sys.argv and not (size > 0.5).all():
    print("some are small")
