"""A kernel written in Triton, one that Triton tunes, and one that torch.compile writes."""

import torch
import triton
import triton.language as tl


@triton.jit
def double(x, y, count, block: tl.constexpr):
    places = tl.program_id(0) * block + tl.arange(0, block)
    inside = places < count
    tl.store(y + places, 2 * tl.load(x + places, mask=inside), mask=inside)


@triton.autotune(configs=[triton.Config({"block": block}) for block in (128, 256)], key=["count"])
@triton.jit
def tuned(x, y, count, block: tl.constexpr):
    places = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(y + places, tl.load(x + places, mask=places < count), mask=places < count)


x = torch.randn(1000, device="cuda")
y = torch.empty_like(x)
for _ in range(3):
    double[(triton.cdiv(1000, 256),)](x, y, 1000, block=256)
tuned[lambda meta: (triton.cdiv(1000, meta["block"]),)](x, y, 1000)
torch.compile(lambda a: torch.sin(a) + torch.cos(a))(x)
print("launched", flush=True)

import one_step
