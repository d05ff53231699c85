"""Reads what it holds for each expert of a router, made on the device in the ways that its arguments name."""

import sys

import torch
import torch.nn.functional as F

EXPERTS = 8
scores = torch.rand(64, EXPERTS, device="cuda")
expert = scores.topk(2, dim=-1).indices
flat = expert.view(-1)


def into(count):
    result = torch.zeros(EXPERTS, dtype=torch.long, device="cuda")
    count(result)
    return result


def streamed(tensor):
    tensor.record_stream(torch.cuda.Stream())
    return tensor


WAYS = {
    "histc": lambda: torch.histc(flat, bins=EXPERTS, min=0, max=EXPERTS - 1),
    "histc_out": lambda: into(lambda out: torch.histc(flat, bins=EXPERTS, min=0, max=EXPERTS - 1, out=out)),
    "bincount": lambda: torch.bincount(flat, minlength=EXPERTS),
    "scatter": lambda: into(lambda out: out.scatter_add_(0, flat, torch.ones_like(flat))),
    "index_add": lambda: into(lambda out: out.index_add_(0, flat, torch.ones_like(flat))),
    "index_put": lambda: into(lambda out: out.index_put_((flat,), torch.ones_like(flat), accumulate=True)),
    "one_hot": lambda: F.one_hot(flat, EXPERTS).sum(dim=0),
    "mask": lambda: torch.zeros(64, EXPERTS, device="cuda").scatter_(1, expert, 1).bool().sum(dim=0),
    "unique": lambda: torch.unique(flat, return_counts=True)[1],
    "nonzero": lambda: (scores > 0.5).nonzero(),
    "zeros": lambda: torch.zeros(EXPERTS, dtype=torch.long, device="cuda"),
    "full": lambda: torch.full((EXPERTS,), 3, device="cuda"),
    "zeros_like": lambda: torch.zeros_like(torch.empty(EXPERTS, dtype=torch.long, device="cuda")),
    "new_zeros": lambda: flat.new_zeros(EXPERTS),
    "zeroed": lambda: torch.empty(EXPERTS, dtype=torch.long, device="cuda").zero_(),
    "filled": lambda: torch.empty(EXPERTS, dtype=torch.long, device="cuda").fill_(3),
    "clone": lambda: torch.zeros(EXPERTS, dtype=torch.long, device="cuda").clone(),
    "copied": lambda: torch.arange(EXPERTS).cuda(),
    "streamed": lambda: streamed(torch.arange(EXPERTS).cuda()),
    "joined": lambda: torch.cat([torch.arange(4).cuda(), torch.arange(4, device="cuda")]),
}
for way in sys.argv[1:]:
    print(way, scores[0, :3] if way == "printed" else WAYS[way]().tolist(), flush=True)

import one_step
