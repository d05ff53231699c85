"""No ranks: each step has two optimizers, which step one after the other, and a stream that waits for events."""

import torch

weights = [torch.nn.Parameter(torch.zeros(256, 256, device="cuda")) for _ in range(2)]
optimizers = [torch.optim.SGD([weight], lr=0.1) for weight in weights]
side = torch.cuda.Stream()
x = torch.zeros(256, 256, device="cuda")
for _ in range(3):
    for weight in weights:
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            beside = x @ x
        torch.cuda.current_stream().wait_stream(side)
        (beside @ weight).sum().backward()
    for optimizer in optimizers:
        optimizer.step()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            x.add_(1)
        torch.cuda.current_stream().wait_stream(side)
        optimizer.zero_grad()
