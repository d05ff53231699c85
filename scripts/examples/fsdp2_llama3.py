"""Llama-3 in plain PyTorch, sharded with FSDP2: a program to run as one rank of many.

    onerank exec --gpu h100-sxm --world-size 8 --steps 2 -- python scripts/examples/fsdp2_llama3.py

It knows nothing of Onerank, and trains on random tokens where there are GPUs.
"""

import argparse
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

# layers, hidden size, ffn, heads, key/value heads (The Llama 3 Herd of Models, table 3)
SIZES = {"debug": (2, 256, 688, 4, 2), "8b": (32, 4096, 14336, 32, 8), "70b": (80, 8192, 28672, 64, 8)}
VOCABULARY = 128256


def rotate(x, rotations):
    pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * rotations).flatten(-2).type_as(x)


class Attention(nn.Module):
    def __init__(self, hidden, heads, key_heads):
        super().__init__()
        self.size = hidden // heads
        self.query = nn.Linear(hidden, hidden, bias=False)
        self.key = nn.Linear(hidden, key_heads * self.size, bias=False)
        self.value = nn.Linear(hidden, key_heads * self.size, bias=False)
        self.output = nn.Linear(hidden, hidden, bias=False)

    def forward(self, x, rotations):
        q, k, v = (
            f(x).unflatten(-1, (-1, self.size)).transpose(1, 2)
            for f in (self.query, self.key, self.value)
        )
        y = F.scaled_dot_product_attention(
            rotate(q, rotations), rotate(k, rotations), v, is_causal=True, enable_gqa=True
        )
        return self.output(y.transpose(1, 2).flatten(-2))


class FeedForward(nn.Module):
    def __init__(self, hidden, ffn):
        super().__init__()
        self.gate = nn.Linear(hidden, ffn, bias=False)
        self.up = nn.Linear(hidden, ffn, bias=False)
        self.down = nn.Linear(ffn, hidden, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Layer(nn.Module):
    def __init__(self, hidden, ffn, heads, key_heads):
        super().__init__()
        self.attention_norm = nn.RMSNorm(hidden, eps=1e-5)
        self.attention = Attention(hidden, heads, key_heads)
        self.ffn_norm = nn.RMSNorm(hidden, eps=1e-5)
        self.feed_forward = FeedForward(hidden, ffn)

    def forward(self, x, rotations):
        x = x + self.attention(self.attention_norm(x), rotations)
        return x + self.feed_forward(self.ffn_norm(x))


class Llama(nn.Module):
    def __init__(self, layers, hidden, ffn, heads, key_heads):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, hidden)
        self.layers = nn.ModuleList(Layer(hidden, ffn, heads, key_heads) for _ in range(layers))
        self.norm = nn.RMSNorm(hidden, eps=1e-5)
        self.head = nn.Linear(hidden, VOCABULARY, bias=False)
        self.head_size = hidden // heads

    def forward(self, tokens):
        dims = torch.arange(0, self.head_size, 2, device=tokens.device).float()
        positions = torch.arange(tokens.shape[1], device=tokens.device).float()
        angles = torch.outer(positions, 500000.0 ** (-dims / self.head_size))
        rotations = torch.polar(torch.ones_like(angles), angles)
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, rotations)
        return self.head(self.norm(x))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="8b")
    parser.add_argument("--sequence", type=int, default=8192)
    parser.add_argument("--steps", type=int, default=10)
    arguments = parser.parse_args()

    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    with torch.device("meta"):
        model = Llama(*SIZES[arguments.size])
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in model.layers:
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    # As TorchTitan wraps it; what comes last is needed first in backward.
    fully_shard(model.embedding, mesh=mesh, mp_policy=policy)
    fully_shard([model.norm, model.head], mesh=mesh, mp_policy=policy, reshard_after_forward=False)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    model.to_empty(device="cuda")
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.02)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)

    for step in range(arguments.steps):
        tokens = torch.randint(VOCABULARY, (1, arguments.sequence + 1), device="cuda")
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step}: loss {loss.item():.3f}, "
              f"peak {torch.cuda.max_memory_allocated() / 2**30:.2f} GiB allocated, "
              f"{torch.cuda.max_memory_reserved() / 2**30:.2f} GiB reserved", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
