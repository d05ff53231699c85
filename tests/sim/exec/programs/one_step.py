"""A training step on the host, so that there is a verdict on the programs that import this."""

import torch


class Optimizer(torch.optim.Optimizer):
    """Torch's own import torch._dynamo, which takes 0.7 s, in what is overridden here."""

    def add_param_group(self, param_group):
        self.param_groups.append(param_group)

    def step(self):
        pass


parameter = torch.nn.Parameter(torch.zeros(1))
optimizer = Optimizer([parameter], {})
parameter.sum().backward()
optimizer.step()
