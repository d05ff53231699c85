"""What the device has free before the program takes anything, as CUDA tells it."""

import torch

from sgd import Sgd

free, total = torch.cuda.mem_get_info()
print("free", free)
print("total", total)
model = torch.nn.Linear(64, 64).cuda()
optimizer = Sgd(model.parameters())
model(torch.randn(8, 64, device="cuda")).sum().backward()
optimizer.step()
