"""A training step of one parameter, so that there is a verdict on the programs that import this."""

import torch

from sgd import Sgd

parameter = torch.nn.Parameter(torch.zeros(1, device="cuda"))
optimizer = Sgd([parameter])
parameter.square().sum().backward()
optimizer.step()
