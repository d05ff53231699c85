"""No ranks: in each step a product runs on a second stream beside one on the first, and a copy from the host on
a third; the first stream waits for both, and the host waits at the end. With "once": one step only."""

import sys

import torch

from sgd import Sgd

WIDTH = 8192
weight = torch.nn.Parameter(torch.zeros(WIDTH, WIDTH, device="cuda", dtype=torch.bfloat16))
optimizer = Sgd([weight])
side, copies = torch.cuda.Stream(), torch.cuda.Stream()
on_host = torch.zeros(16 << 20, dtype=torch.bfloat16, pin_memory=True)
x = torch.zeros(WIDTH, WIDTH, device="cuda", dtype=torch.bfloat16)
for _ in range(1 if "once" in sys.argv else 3):
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        beside = x @ x
    with torch.cuda.stream(copies):
        on_host.cuda(non_blocking=True)
    (x @ weight).sum().backward()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.current_stream().wait_stream(copies)
    beside.add_(1)
    optimizer.step()
    torch.cuda.synchronize()
