"""What torch gives to cuDNN: convolutions in both layouts, batch norm, an LSTM and a projected one."""

import torch
from torch import nn

from sgd import Sgd

torch.backends.cudnn.benchmark = True
layers = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, stride=2, groups=8)
).cuda()
transposed = nn.ConvTranspose2d(8, 16, 4, stride=2, bias=False).cuda().to(memory_format=torch.channels_last)
recurrent = nn.LSTM(16, 16, 2, batch_first=True, bidirectional=True, dropout=0.1).cuda()
projected = nn.LSTM(32, 16, proj_size=4, batch_first=True).cuda()
modules = nn.ModuleList([layers, transposed, recurrent, projected])
optimizer = Sgd([*modules.parameters()])
for _ in range(2):
    with torch.autocast("cuda", torch.bfloat16):
        image = transposed(layers(torch.randn(4, 3, 32, 32, device="cuda")))
    sequence, _ = recurrent(image.float().flatten(2).transpose(1, 2))
    sequence, _ = projected(sequence)
    sequence.square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
print("enabled", torch.backends.cudnn.enabled, "sequence", list(sequence.shape), flush=True)
lengths = torch.tensor([20, 5, 12, 7])
packed = nn.utils.rnn.pack_padded_sequence(torch.randn(4, 20, 16, device="cuda"), lengths, batch_first=True, enforce_sorted=False)
padded, read = nn.utils.rnn.pad_packed_sequence(recurrent(packed)[0], batch_first=True)
print("padded", list(padded.shape), "lengths", read.tolist(), flush=True)
