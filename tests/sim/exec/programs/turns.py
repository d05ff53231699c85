"""A generator and its discriminator, whose optimizers step in turn, each after a backward of its own."""

import torch

generator, discriminator = (torch.nn.Linear(64, 64, bias=False).cuda() for _ in range(2))
optimizers = {model: torch.optim.SGD(model.parameters(), lr=0.1) for model in (generator, discriminator)}
for _ in range(3):
    noise = torch.randn(32, 64, device="cuda")
    made = generator(noise)
    (discriminator(made.detach()).mean() - discriminator(noise).mean()).backward()
    optimizers[discriminator].step()
    optimizers[discriminator].zero_grad()
    discriminator(made).mean().backward()
    optimizers[generator].step()
    for optimizer in optimizers.values():
        optimizer.zero_grad()
