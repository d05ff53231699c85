"""Trains all but the embedding, as LoRA does, on two micro-batches of two sequences; evaluates before each step."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(512, 64).requires_grad_(False)
        self.head = nn.Linear(64, 1)

    def forward(self, batch):
        return self.head(self.embedding(batch["tokens"]))


def batch(sequences):
    return {"tokens": torch.zeros(sequences, 128, dtype=torch.long, device="cuda")}


model = Model().cuda()
optimizer = torch.optim.AdamW(model.head.parameters())
for _ in range(3):
    with torch.no_grad():
        model(batch(16))
    for _ in range(2):
        model(batch(2)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
