"""A kernel of a library is given an activation and a parameter, which lies in a flat buffer of several;
another three parts of one activation; a third the activation to read and to write; a fourth the activation,
and how long the row of each of its blocks is; a fifth the first two, and a number that is no integer."""

import torch

from own_library import launch_with, register
from sgd import Sgd

buffer = torch.zeros(1 << 20, device="cuda", dtype=torch.bfloat16)
parameters = [torch.nn.Parameter(part) for part in buffer.split([1024, (1 << 20) - 1024])]
optimizer = Sgd(parameters)
norm, rope, softmax = register("norm_fwd", 16), register("rope_fwd", 24), register("softmax_bwd", 24)
loss, rms = register("loss_fwd", 8, 4), register("rms_fwd", 16, 4)
BITS_OF_EPSILON = 0x358637BD  # 1e-6 in fp32
x = torch.zeros(4096, 1024, device="cuda", dtype=torch.bfloat16)
for _ in range(3):
    launch_with(norm, x, parameters[0])
    launch_with(rope, x, x[:, 256:], x[1024:])
    launch_with(softmax, x, x, parameters[0])
    launch_with(loss, x, numbers=[1024], blocks=4096, threads=128)
    launch_with(rms, x, parameters[0], numbers=[BITS_OF_EPSILON], blocks=4096, threads=128)
    sum((x * parameter[:1024]).sum() for parameter in parameters).backward()
    optimizer.step()
