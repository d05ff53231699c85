"""Integers that are drawn on the device are those that a GPU draws."""

import torch

MULTIPLIERS, STEPS, WORD = (0xD2511F53, 0xCD9E8D57), (0x9E3779B9, 0xBB67AE85), 0xFFFFFFFF


def philox(seed, thread, calls_before, word=0):
    """A word of Philox 4x32-10 (Salmon et al., SC11)."""
    a, b, c, d = calls_before, 0, thread, 0
    key, other = seed & WORD, seed >> 32
    for _ in range(10):
        x, y = MULTIPLIERS[0] * a, MULTIPLIERS[1] * c
        a, b, c, d = (y >> 32) ^ b ^ key, y & WORD, (x >> 32) ^ d ^ other, x & WORD
        key, other = (key + STEPS[0]) & WORD, (other + STEPS[1]) & WORD
    return (a, b, c, d)[word]


# Its authors' test (Random123, kat_vectors), and what torch.rand of a GPU begins with after torch.manual_seed(0).
assert philox(0, 0, 0) == 0x6627E8D5
assert [round(philox(0, thread, 0) / 2**32, 4) for thread in range(4)] == [0.3990, 0.5167, 0.0249, 0.9401]

torch.manual_seed(0)
assert torch.randint(1000, (2, 2), device="cuda").tolist() == [
    [philox(0, 2 * row + column, 0) % 1000 for column in range(2)] for row in range(2)
]
assert torch.randint(-5, 5, (3,), device="cuda").tolist() == [philox(0, i, 1) % 10 - 5 for i in range(3)]

own = torch.Generator("cuda").manual_seed(2**40 + 7)
numbers = torch.empty(2000, device="cuda", dtype=torch.int32).random_(256, generator=own)
assert numbers.sum().item() == sum(philox(2**40 + 7, i, 0) % 256 for i in range(2000))
torch.cuda.manual_seed(3)
torch.rand(8, device="cuda")
assert torch.equal(torch.randint(9, (4,), device="cuda").cpu(), torch.tensor([philox(3, i, 1) % 9 for i in range(4)]))

try:
    torch.randint(5, 5, (2,), device="cuda")
    raise AssertionError("it drew from no numbers")
except RuntimeError as error:
    assert "from" in str(error), error

# A thread that has several elements takes its numbers one after the other for them.
device = torch.cuda.get_device_properties(0)
threads = device.multi_processor_count * device.max_threads_per_multi_processor
torch.manual_seed(0)
many = torch.randint(2**20, (5 * threads + 3,), device="cuda")
for place in (0, threads - 1, threads, 3 * threads + 7, 4 * threads, 5 * threads + 2):
    row, thread = divmod(place, threads)
    assert many[place].item() == philox(0, thread, row // 4, row % 4) % 2**20, place
assert torch.randint(9, (1,), device="cuda").item() == philox(0, 0, 2) % 9

import one_step
