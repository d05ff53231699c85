"""Two experts on each rank: tokens are sent to them in the ways of Megatron-LM's dispatchers, by all-to-all and by
gathering them all."""

import os

import torch
import torch.distributed as dist
from torch import nn

LOCAL, CHOICES, TOKENS, WIDTH = 2, 2, 256, 32

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
ranks, rank = dist.get_world_size(), dist.get_rank()
experts = LOCAL * ranks
mine = list(range(LOCAL * rank, LOCAL * (rank + 1)))
router = nn.Linear(WIDTH, experts).cuda()


def permuted(tokens, routing_map):
    """Tokens in the order of their experts."""
    of_experts = routing_map.bool().T.contiguous()
    places = torch.arange(len(tokens), device="cuda").unsqueeze(0).expand(of_experts.size(0), -1)
    return tokens.index_select(0, places.masked_select(of_experts))


def routed(tokens):
    scores, choices = torch.topk(router(tokens).softmax(dim=-1), k=CHOICES, dim=1)
    probs = torch.zeros(len(tokens), experts, device="cuda").scatter(1, choices, scores)
    return probs, torch.zeros_like(probs).int().scatter(1, choices, 1).bool()


def all_to_all(tokens):
    _, routing_map = routed(tokens)
    of_experts = routing_map.sum(dim=0).long()
    sent = of_experts.reshape(ranks, LOCAL).sum(dim=1).to("cpu", non_blocking=True)
    of_ranks = torch.empty(ranks * experts, dtype=torch.long, device="cuda")
    dist.all_gather_into_tensor(of_ranks, of_experts)
    of_mine = of_ranks.reshape(ranks, 1, experts)[:, :, mine[0] : mine[-1] + 1].contiguous()
    received = of_mine.sum(dim=(1, 2)).to("cpu", non_blocking=True)
    torch.cuda.synchronize()
    output = torch.empty(int(received.sum()), WIDTH, device="cuda")
    dist.all_to_all_single(output, permuted(tokens, routing_map), received.tolist(), sent.tolist())
    return output, of_mine.sum(dim=(0, 1)).tolist()


def gathered(tokens):
    _, routing_map = routed(tokens)
    everyones = torch.empty(ranks * TOKENS, experts, dtype=torch.bool, device="cuda")
    dist.all_gather_into_tensor(everyones, routing_map)
    local_map = everyones[:, mine[0] : mine[-1] + 1]
    all_tokens = torch.empty(ranks * TOKENS, WIDTH, device="cuda")
    dist.all_gather_into_tensor(all_tokens, tokens.detach())
    return permuted(all_tokens, local_map), local_map.sum(dim=0).tolist()


for way in (all_to_all, gathered):
    tokens, of_experts = way(torch.randn(TOKENS, WIDTH, device="cuda"))
    print(way.__name__, "tokens", len(tokens), "of my experts", of_experts, flush=True)
dist.destroy_process_group()

import one_step
