"""No ranks: a product by a function of autograd in Python that has the name of TransformerEngine's."""

import torch


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        return gradient @ weight.t(), x.t() @ gradient


weight = torch.nn.Parameter(torch.zeros(256, 256, device="cuda"))
optimizer = torch.optim.SGD([weight], lr=0.1)
x = torch.zeros(256, 256, device="cuda")
for _ in range(3):
    _Linear.apply(x, weight).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
