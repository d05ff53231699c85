"""Kernels as torch.compile launches them: one reads and writes its first tensor; another of the same name
does so with its second."""

import types

import torch
from torch._inductor.runtime import triton_heuristics

from own_library import launch_with, register
from sgd import Sgd

one = register("triton_poi_fused_add_0", 16)


def run(kernel, *tensors):
    launch_with(one, *tensors)


def kernel(*parameters):
    function = types.SimpleNamespace(__name__="triton_poi_fused_add_0", arg_names=parameters)
    return types.SimpleNamespace(fn=function)


triton_heuristics.CachingAutotuner.run = run  # needs no Triton
launch = lambda *arguments: triton_heuristics.CachingAutotuner.run(*arguments)
x = torch.zeros(1 << 20, device="cuda")
y = torch.zeros(1 << 19, device="cuda")
parameter = torch.nn.Parameter(torch.ones(1, device="cuda"))
optimizer = Sgd([parameter])
for _ in range(3):
    launch(kernel("in_out_ptr0", "in_ptr0", "xnumel"), x, y)
    launch(kernel("in_ptr0", "in_out_ptr0", "xnumel"), x, y)
    launch(kernel("in_ptr0", "out_ptr0", "xnumel"), x, y)
    parameter.sum().backward()
    optimizer.step()
