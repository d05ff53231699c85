"""Operators of an extension, with kernels for both devices: what they compute of what the host knows is
known, and the sizes that their host code reads of their kernels are those of their results."""

import sys

import torch

SCHEMAS = {
    "sums": "(Tensor counts) -> Tensor",
    "rows": "(Tensor counts) -> (Tensor, Tensor)",
    "increments": "(Tensor counts) -> ()",  # as extensions do: it does not say that it writes
    "draws": "(Tensor counts) -> Tensor",
    "two_sizes": "(Tensor counts) -> (Tensor, Tensor)",
}


def unknown(count):
    """What a kernel has computed."""
    return torch.rand(count, device="cuda").long()


def size_from_kernel():
    return int(unknown(1).sum())


def of_both_sizes(counts):
    return counts.unique(), counts.repeat_interleave(counts)


def nothing(_):
    return None


ON_CPU = {
    "sums": lambda counts: counts.cumsum(0),
    "rows": lambda counts: (counts.flip(0), torch.arange(len(counts)).repeat_interleave(counts)),
    "increments": lambda counts: nothing(counts.add_(1)),
    "draws": lambda counts: torch.randint(0, 9, (len(counts),)),
    "two_sizes": of_both_sizes,
}
ON_DEVICE = {
    "sums": lambda counts: unknown(len(counts)),
    "rows": lambda counts: (unknown(len(counts)), unknown(size_from_kernel())),
    "increments": lambda counts: nothing(counts.copy_(unknown(len(counts)))),
    "draws": lambda counts: unknown(len(counts)),
    "two_sizes": lambda counts: (unknown(size_from_kernel()), unknown(size_from_kernel())),
}

library = torch.library.Library("extension", "DEF")
for name, schema in SCHEMAS.items():
    library.define(name + schema)
    library.impl(name, ON_CPU[name], "CPU")
    library.impl(name, ON_DEVICE[name], "CUDA")

counts = torch.tensor([2, 0, 3], device="cuda") if "unknown" not in sys.argv else unknown(3)
for name in SCHEMAS:
    if name not in sys.argv:
        continue
    results = getattr(torch.ops.extension, name)(counts)
    results = results if isinstance(results, tuple) else (results,)
    print(name, *(result.tolist() for result in results if result is not None), counts.tolist(), flush=True)

import one_step
