"""Memory that another library takes with calls of CUDA: 3 GiB that it gives back, 1 GiB that it keeps
while PyTorch's allocator takes 4 GiB, and 2 GiB more after each step."""

import ctypes

import torch

from sgd import Sgd

GIB = 2**30
driver = ctypes.CDLL("libcuda.so.1")


def take(size):
    address = ctypes.c_void_p()
    assert driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size)) == 0
    return address


model = torch.nn.Linear(64, 64).cuda()
assert driver.cuMemFree_v2(take(3 * GIB)) == 0
take(GIB)
large = torch.empty(4 * GIB, dtype=torch.uint8, device="cuda")
optimizer = Sgd(model.parameters())
for _ in range(2):
    model(torch.randn(8, 64, device="cuda")).sum().backward()
    optimizer.step()
    take(2 * GIB)
