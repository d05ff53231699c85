"""No ranks: in each step a product runs on a second stream beside one on the first, which then waits for it;
the host waits at the end. With "once": one step only."""

import sys

import torch

WIDTH = 8192
weight = torch.nn.Parameter(torch.zeros(WIDTH, WIDTH, device="cuda", dtype=torch.bfloat16))
optimizer = torch.optim.SGD([weight], lr=0.1)
side = torch.cuda.Stream()
x = torch.zeros(WIDTH, WIDTH, device="cuda", dtype=torch.bfloat16)
for _ in range(1 if "once" in sys.argv else 3):
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        beside = x @ x
    (x @ weight).sum().backward()
    torch.cuda.current_stream().wait_stream(side)
    beside.add_(1)
    optimizer.step()
    torch.cuda.synchronize()
