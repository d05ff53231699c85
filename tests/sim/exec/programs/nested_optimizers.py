"""An optimizer that steps another, as Megatron-LM's hybrid one does; the peak lies inside."""

import torch

parameter = torch.nn.Parameter(torch.zeros(1 << 20, device="cuda"))


class Inner(torch.optim.SGD):
    @torch.no_grad()
    def step(self, closure=None):
        torch.zeros(8 << 20, device="cuda")  # 32 MiB, for a moment


class Outer(torch.optim.SGD):
    @torch.no_grad()
    def step(self, closure=None):
        inner.step()
        torch.zeros(1 << 20, device="cuda")


inner, outer = Inner([parameter], lr=1.0), Outer([parameter], lr=1.0)
for _ in range(2):
    parameter.sum().backward()
    outer.step()
print("allocated", torch.cuda.max_memory_allocated())
