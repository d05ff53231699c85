"""Attention to the tokens before each one in its document, of two documents: by a mask that is made
once, by one whose documents nobody knows, and by one that compiled code makes in every step. The GPU is
the default device, as it is for torch.compile while it warms up for graphs."""
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

torch.set_default_device("cuda")
BATCH, HEADS, KEY_HEADS, TOKENS, WIDTH = 2, 4, 2, 1024, 64


def mask_of(make, documents):
    def is_seen(batch, head, query, key):
        return (query >= key) & (documents[batch, query] == documents[batch, key])

    return make(is_seen, BATCH, None, TOKENS, TOKENS, device="cuda")


attend = torch.compile(flex_attention, dynamic=False)
make_compiled = torch.compile(create_block_mask)
queries = torch.nn.Parameter(torch.zeros(BATCH, HEADS, TOKENS, WIDTH, device="cuda", dtype=torch.bfloat16))
keys = torch.nn.Parameter(torch.zeros(BATCH, KEY_HEADS, TOKENS, WIDTH, device="cuda", dtype=torch.bfloat16))
optimizer = torch.optim.SGD([queries, keys], lr=0.1)
documents = (torch.arange(TOKENS, device="cpu") // (TOKENS // 2)).expand(BATCH, TOKENS).contiguous().to("cuda")
known = mask_of(create_block_mask, documents)
unknown = mask_of(create_block_mask, torch.randn(BATCH, TOKENS, device="cuda").sign().to(torch.int64))
for step in range(3):
    for mask in (known, unknown, mask_of(make_compiled, documents)):
        attend(queries, keys, keys, block_mask=mask, enable_gqa=True).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
