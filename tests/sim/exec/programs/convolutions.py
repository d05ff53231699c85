"""What torch would give to cuDNN: convolutions, batch norm and an LSTM, by a program that asks for cuDNN itself."""

import torch
from torch import nn

torch.backends.cudnn.enabled = True
torch.backends.cudnn.benchmark = True
layers = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, stride=2, groups=8)
).cuda()
recurrent = nn.LSTM(8, 16, batch_first=True).cuda()
optimizer = torch.optim.SGD([*layers.parameters(), *recurrent.parameters()], lr=0.1)
for _ in range(2):
    image = layers(torch.randn(4, 3, 32, 32, device="cuda"))
    sequence, _ = recurrent(image.flatten(2).transpose(1, 2))
    sequence.square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
print("enabled", torch.backends.cudnn.enabled, "sequence", list(sequence.shape), flush=True)
