"""Tensors that have no storage themselves: the sparse gradient of an embedding, with `func` parameters that
torch.func wraps twice while the module runs, with `sharded` a table of which this rank has a shard."""

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


def sharded():
    """As TorchRec does, whose tables are updated by their own kernels in backward."""
    from torch.distributed._shard.sharded_tensor import Shard, init_from_local_shards

    torch.distributed.init_process_group("nccl")
    model = torch.nn.Linear(WIDTH, WIDTH, bias=False).cuda()
    rows = torch.randn(WORDS, WIDTH, device="cuda")
    table = init_from_local_shards([Shard.from_tensor_and_offsets(rows, [0, 0], rank=0)], WORDS, WIDTH)
    optimizer = torch.optim.SGD(model.parameters())
    optimizer.param_groups.append({**optimizer.param_groups[0], "params": [table]})
    for _ in range(3):
        model(rows[:TOKENS]).sum().backward()
        optimizer.step()


globals()[sys.argv[1] if len(sys.argv) > 1 else "sparse"]()
