"""A vision-language model puts images where tokens say so: it counts a mask that is expanded over the width of the
model, of which the host knows the few elements that it has in memory."""

import torch

from sgd import Sgd

WIDTH = 4096

parameter = torch.nn.Parameter(torch.ones(1, device="cuda"))
optimizer = Sgd([parameter])
tokens = torch.zeros(2, 64, dtype=torch.long)
tokens[:, 5:20] = 7
tokens = tokens.cuda()
for _ in range(2):
    hidden = torch.randn(2, 64, WIDTH, device="cuda")
    mask = (tokens == 7).unsqueeze(-1).expand_as(hidden)
    print("elements", hidden[mask].numel(), flush=True)
    (hidden * parameter).sum().backward()
    optimizer.step()
