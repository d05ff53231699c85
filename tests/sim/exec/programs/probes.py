"""A launcher: one process looks at the GPU, then one trains, then one looks again."""

import subprocess
import sys

if "train" not in sys.argv:
    probe = [sys.executable, "-c", "import torch; torch.zeros(1, device='cuda')"]
    for command in (probe, [sys.executable, __file__, "train"], probe):
        subprocess.run(command, check=True)
    sys.exit()

import torch

from sgd import Sgd

model = torch.nn.Linear(256, 256).cuda()
optimizer = Sgd(model.parameters())
for _ in range(2):
    model(torch.randn(8, 256, device="cuda")).sum().backward()
    optimizer.step()
