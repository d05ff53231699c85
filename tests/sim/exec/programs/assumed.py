"""Decides by its loss, its gradients' norm and its gradients' overflow, as training loops do."""

import torch
from torch import nn

from sgd import Sgd

model = nn.Linear(16, 8).cuda()
optimizer = Sgd(model.parameters())
scaler = torch.amp.GradScaler()
for _ in range(2):
    labels = torch.zeros(4, dtype=torch.long, device="cuda")
    loss = nn.functional.cross_entropy(model(torch.randn(4, 16, device="cuda")), labels)
    scaler.scale(loss / 2).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=False)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
print("loss", (loss / 2).item(), "norm", norm.item(), "scale", scaler.get_scale(), flush=True)

import one_step
