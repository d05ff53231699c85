"""Counts the tokens that a fused router gives each of 8 experts: 64 tokens with two each."""

import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent / "fused_router"))
from transformer_engine.pytorch import router

logits = torch.zeros(64, 8, device="cuda")
ways = {
    "chosen": lambda: router.tex.fused_topk_with_score_function_fwd(logits, 2, False),
    "for_loss": lambda: router.tex.fused_score_for_moe_aux_loss_fwd(logits=logits, topk=2, score_function="softmax"),
}
for name, route in ways.items():
    _, routing_map, _ = route()
    print(name, routing_map.sum(dim=0).tolist(), "of a token", set(routing_map.sum(dim=1).tolist()), flush=True)
