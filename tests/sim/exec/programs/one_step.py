"""A training step on the host, so that there is a verdict on the programs that import this."""

import torch

from sgd import Sgd

parameter = torch.nn.Parameter(torch.zeros(1))
optimizer = Sgd([parameter])
parameter.sum().backward()
optimizer.step()
