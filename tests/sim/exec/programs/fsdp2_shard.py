"""The Llama of Onerank's own shard (dialect torchtitan) as a PyTorch program under FSDP2: the same
operators on tensors of the same shapes. usage: fsdp2_shard.py LAYERS HIDDEN FFN HEADS GROUPS VOCABULARY
SEQUENCE MICRO_BATCHES RESHARD"""
import os
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

LAYERS, HIDDEN, FFN, HEADS, GROUPS, VOCABULARY, SEQUENCE, MICRO_BATCHES, RESHARD = map(
    int, sys.argv[1:])
WIDTH = HIDDEN // HEADS


def rotate(x, cos, sin):
    turned = torch.cat((-x[..., WIDTH // 2:], x[..., :WIDTH // 2]), -1)
    return x * cos + turned * sin


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(HIDDEN, (HEADS + 2 * GROUPS) * WIDTH, bias=False)
        self.projection = nn.Linear(HIDDEN, HIDDEN, bias=False)

    def heads(self, x, cos, sin):
        queries = HEADS // GROUPS
        packed = self.qkv(x).view(*x.shape[:2], GROUPS, (queries + 2) * WIDTH)
        query, key, value = packed.split((queries * WIDTH, WIDTH, WIDTH), -1)
        query = rotate(query.reshape(*x.shape[:2], HEADS, WIDTH), cos, sin)
        return query, rotate(key, cos, sin).contiguous(), value.contiguous()

    def forward(self, x, cos, sin):
        query, key, value = (t.permute(1, 2, 0, 3) for t in self.heads(x, cos, sin))
        attended = F.scaled_dot_product_attention(
            query, key, value, is_causal=True, enable_gqa=HEADS != GROUPS)
        del query, key, value
        return self.projection(attended.permute(2, 0, 1, 3).reshape(x.shape))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(HIDDEN, 2 * FFN, bias=False)
        self.second = nn.Linear(FFN, HIDDEN, bias=False)

    def forward(self, x):
        gate, up = self.first(x).chunk(2, -1)
        hidden = F.silu(gate) * up
        del gate, up
        return self.second(hidden)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm = nn.RMSNorm(HIDDEN)
        self.attention = Attention()
        self.mlp_norm = nn.RMSNorm(HIDDEN)
        self.mlp = Mlp()

    def forward(self, x, cos, sin):
        x = x + self.attention(self.attention_norm(x), cos, sin)
        return x + self.mlp(self.mlp_norm(x))


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, HIDDEN)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.RMSNorm(HIDDEN)
        self.head = nn.Linear(HIDDEN, VOCABULARY, bias=False)

    def forward(self, tokens, cos, sin):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.head(self.norm(x))


def tables():
    exponents = torch.arange(0, WIDTH, 2, device="cuda").float() / WIDTH
    angles = torch.outer(torch.arange(SEQUENCE, device="cuda").float(), 500000.0 ** -exponents)
    both = torch.cat((angles, angles), -1)[:, None, None]
    return both.cos().bfloat16(), both.sin().bfloat16()


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    with torch.device("meta"):
        model = Llama()
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    options = {"mesh": mesh, "mp_policy": policy, "reshard_after_forward": bool(RESHARD)}
    fully_shard(model.embedding, **options)
    for layer in model.layers:
        fully_shard(layer, **options)
    fully_shard([model.norm, model.head], **{**options, "reshard_after_forward": False})
    fully_shard(model, **options)
    model.to_empty(device="cuda")
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.02)
    cos, sin = tables()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)

    for step in range(2):
        optimizer.zero_grad()
        torch.cuda.reset_peak_memory_stats()
        for _ in range(MICRO_BATCHES):
            tokens = torch.zeros(SEQUENCE, 1, device="cuda", dtype=torch.long)
            labels = torch.zeros(SEQUENCE, 1, device="cuda", dtype=torch.long)
            logits = model(tokens, cos, sin)
            rows = logits.float().view(-1, VOCABULARY)
            del logits
            losses = F.cross_entropy(rows, labels.reshape(-1), reduction="none")
            del rows
            loss = losses.mean() / MICRO_BATCHES
            del losses
            loss.backward()
        print(torch.cuda.max_memory_allocated(), torch.cuda.memory_allocated(),
              torch.cuda.max_memory_reserved(), flush=True)
        optimizer.step()
    dist.destroy_process_group()


main()
