"""Trains an embedding of 20 virtual tokens before each of four sequences; the words' embedding is frozen."""

import torch
from torch import nn

words, prompt, head = nn.Embedding(512, 64), nn.Embedding(20, 64), nn.Linear(64, 512)
for module in (words, head):
    module.requires_grad_(False)
for module in (words, prompt, head):
    module.cuda()
optimizer = torch.optim.AdamW(prompt.parameters())
for _ in range(3):
    tokens = torch.zeros(4, 128, dtype=torch.long, device="cuda")
    virtual = prompt(torch.arange(20, device="cuda")).expand(4, -1, -1)
    logits = head(torch.cat([virtual, words(tokens)], 1))[:, 20:]
    nn.functional.cross_entropy(logits.reshape(-1, 512), tokens.view(-1)).backward()
    optimizer.step()
    optimizer.zero_grad()
