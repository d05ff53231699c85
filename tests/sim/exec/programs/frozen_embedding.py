"""Trains all but the embedding, as LoRA does, on two micro-batches of two sequences; evaluates before each step. With
"flat" the sequences lie one behind the other, with their ends beside them, with "images" they are numbers of labels,
and the loss is a module that is given the kinds of some boxes."""

import sys

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(512, 64).requires_grad_(False)
        self.head = nn.Linear(64, 1)

    def forward(self, batch):
        return self.head(self.embedding(batch["tokens"]))


class Criterion(nn.Module):
    def forward(self, outputs, targets):
        return outputs.square().mean()


def integers(*sizes):
    return torch.zeros(*sizes, dtype=torch.long, device="cuda")


def batch(sequences):
    if "flat" in sys.argv:
        return {"tokens": integers(sequences * 128), "ends": integers(sequences)}
    if "images" in sys.argv:
        return {"tokens": integers(sequences), "images": torch.zeros(sequences, 3, 8, 8, device="cuda")}
    return {"tokens": integers(sequences, 128)}


criterion = Criterion()
model = Model().cuda()
optimizer = torch.optim.AdamW(model.head.parameters())
for _ in range(3):
    with torch.no_grad():
        model(batch(16))
    for _ in range(2):
        targets = [{"kinds": integers(5)}] if "images" in sys.argv else []
        criterion(model(batch(2)), targets).backward()
    optimizer.step()
    optimizer.zero_grad()
