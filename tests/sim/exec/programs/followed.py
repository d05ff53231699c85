"""Values that the host sent, taken through operators on the device, are there what they are on the CPU."""

import torch
import torch.nn.functional as F


def changed(tensor, change):
    change(tensor)
    return tensor


def grid(device, dtype=torch.long):
    return torch.arange(32).to(device).view(4, 8).to(dtype)


def labels(device):
    return torch.tensor([[3, -100, 7, -100], [-100, 2, 2, 9]]).to(device)


def many_labels(device):
    """4 MiB, of which a third counts in a loss."""
    numbers = torch.arange(1 << 19).to(device)
    return numbers.masked_fill(numbers % 3 != 0, -100)


def routes(device):
    choices = torch.tensor([[0, 3], [1, 3], [2, 5], [5, 0]]).to(device)
    return torch.zeros(4, 6, device=device, dtype=torch.int32).scatter(1, choices, 1).bool()


def printed(tensor):
    return "".join(str(tensor).replace("device='cuda:0'", "").split()).rstrip(",)").replace(",,", ",")


WAYS = {
    "unknown or true": lambda d: (torch.rand(4, device=d) > 0.5) | torch.full((4,), True, device=d),
    "nothing of the unknown": lambda d: torch.rand(4, device=d).long() & torch.full((4,), False, device=d),
    "slice": lambda d: grid(d)[:, 2:5].contiguous(),
    "slice of a slice": lambda d: grid(d)[1:, ::3][:, 1:].clone(),
    "transposed": lambda d: grid(d).t().contiguous(),
    "of another type": lambda d: grid(d)[:, 3].to(torch.float16),
    "mask to numbers": lambda d: (grid(d) > 7).int(),
    "read in pieces": lambda d: grid(d)[:, 1],
    "column written": lambda d: changed(grid(d), lambda x: x[:, 1].fill_(-1)),
    "column copied": lambda d: changed(grid(d), lambda x: x[:, 1].copy_(x[:, 2])),
    "column added": lambda d: changed(grid(d), lambda x: x[1:, 2].add_(x[1:, 3])),
    "columns of unknown rows": lambda d: changed(
        torch.empty(2, 3, device=d, dtype=torch.long), lambda x: [x[:, i].fill_(i) for i in range(3)]
    ),
    "indexed": lambda d: grid(d)[torch.tensor([2, 0]).to(d), 1:3],
    "index put": lambda d: changed(grid(d), lambda x: x.__setitem__(x > 30, 0)),
    "masked": lambda d: grid(d)[grid(d) % 5 == 0],
    "masked select": lambda d: grid(d).masked_select(routes(d)[:, :1]),
    "nonzero": lambda d: (grid(d) % 7 == 0).nonzero(),
    "where": lambda d: torch.stack(torch.where(grid(d) > 20)),
    "argsort": lambda d: (-grid(d)[:, 0]).argsort(),
    "sorted": lambda d: grid(d).flip(1).sort(dim=1).values,
    "topk": lambda d: grid(d, torch.float32).topk(2, dim=1).indices,
    "cumsum": lambda d: grid(d).cumsum(0),
    "unique": lambda d: (grid(d) // 3).unique(return_counts=True)[1],
    "unique consecutive": lambda d: labels(d).view(-1).unique_consecutive(),
    "repeated": lambda d: torch.arange(3).to(d).repeat_interleave(torch.tensor([2, 0, 3]).to(d)),
    "bincount": lambda d: labels(d).clamp(min=0).view(-1).bincount(),
    "histogram": lambda d: torch.histc(grid(d, torch.float32), bins=4, min=0, max=31),
    "one hot": lambda d: F.one_hot(labels(d).clamp(min=0)).sum(dim=(0, 1)),
    "valid tokens": lambda d: (labels(d) != -100).sum(),
    "valid tokens of a large batch": lambda d: many_labels(d)[many_labels(d) != -100],
    "packed sequences": lambda d: F.pad(torch.tensor([3, 5]).to(d).cumsum(0), (1, 0)),
    "local experts": lambda d: routes(d)[:, 2:4].sum(0),
    "chosen experts": lambda d: routes(d)[:, torch.tensor([3, 5])].sum(0),
    "permutation": lambda d: torch.arange(4).to(d).unsqueeze(0).expand(6, -1).masked_select(routes(d).t()),
    "causal": lambda d: torch.ones(4, 4, device=d, dtype=torch.bool).tril().sum(1),
}

QUESTIONS = {
    "equal": lambda d: torch.equal(grid(d), grid(d).clone()),
    "not equal": lambda d: torch.equal(grid(d), grid(d) + 1),
    "all close": lambda d: torch.allclose(grid(d, torch.float32), grid(d, torch.float32)),
    "is nonzero": lambda d: bool(grid(d)[1, 1] > 8),
    "printed": lambda d: printed(grid(d)),
    "printed floats": lambda d: printed(grid(d, torch.bfloat16) / 4),
    "printed zeros": lambda d: printed(torch.zeros(3, device=d)),
}

for name, way in WAYS.items():
    made = way("cuda")
    print(name, "is right" if torch.equal(made.cpu(), way("cpu")) else f"is {made.tolist()}", flush=True)
for name, way in QUESTIONS.items():
    print(name, "is right" if way("cuda") == way("cpu") else f"is {way('cuda')}", flush=True)

# What a known mask takes of unknown values has a known size, also where gradients flow back.
hidden = torch.rand(2, 4, 3, device="cuda", requires_grad=True)
taken = hidden[labels("cuda") != -100]
taken.sum().backward()
print("taken", list(taken.shape), list(hidden.grad.shape))

import one_step
