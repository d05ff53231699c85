"""Tensors that have no storage themselves: the sparse gradient of an embedding, and with `func` parameters that
torch.func wraps twice while the module runs."""

import sys

import torch

TOKENS, WORDS, WIDTH = 4096, 100_000, 128


def sparse():
    model = torch.nn.Embedding(WORDS, WIDTH, sparse=True).cuda()
    optimizer = torch.optim.SparseAdam(model.parameters())
    tokens = torch.randint(0, WORDS, (TOKENS,), device="cuda")
    for _ in range(3):
        model(tokens).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def func():
    model = torch.nn.Linear(WIDTH, WIDTH).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    samples = torch.randn(8, WIDTH, device="cuda")

    def loss(parameters, sample):
        return torch.func.functional_call(model, parameters, (sample,)).sum()

    gradients_of_samples = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))
    for _ in range(3):
        parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}
        gradients = gradients_of_samples(parameters, samples)
        for name, parameter in model.named_parameters():
            parameter.grad = gradients[name].mean(0)
        optimizer.step()


func() if "func" in sys.argv else sparse()
