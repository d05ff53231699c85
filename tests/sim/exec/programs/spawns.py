"""Starts a rank for each GPU by itself, each with a model of its own width."""

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from sgd import Sgd


def train(rank, world_size):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method="tcp://127.0.0.1:29511", rank=rank,
                            world_size=world_size)
    width = 64 * (rank + 1)
    model = torch.nn.Linear(width, width).cuda()
    optimizer = Sgd(model.parameters())
    for _ in range(2):
        model(torch.randn(8, width, device="cuda")).sum().backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
    print("trained as", rank, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    ranks = torch.cuda.device_count()
    mp.spawn(train, args=(ranks,), nprocs=ranks)
