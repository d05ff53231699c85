"""Bytes by phase, collectives and the tensors at the peak: the shard's against the program's."""
import collections
import dataclasses
import re

from .order import compare_orders, nccl_type

# The program's own, which the shard leaves out: scalars of loss, norm and flags, what the first
# tensor rank's data loader hands to the others, and calls in a group of one rank, which move nothing.
LARGEST_SCALAR_BYTES = 64
# A message has two ends whatever group it is sent in. An all-to-all with splits is seen as the
# messages that torch.distributed makes of it.
POINT_TO_POINT = ("send", "recv")


@dataclasses.dataclass(frozen=True)
class Bytes:
    shard: int
    program: int

    @property
    def error(self):
        """Of the program's: +0.002 is 0.2 % too much."""
        return self.shard / self.program - 1 if self.program else 0.0


@dataclasses.dataclass(frozen=True)
class Call:
    """Collectives of one iteration that are alike."""
    kind: str
    group_size: int
    dtype: str
    bytes: int


@dataclasses.dataclass(frozen=True)
class CountedCall:
    call: Call
    shard: int
    program: int


@dataclasses.dataclass(frozen=True)
class Tensors:
    """Allocations of one size at the peaks, of which one side has more."""
    bytes: int
    shard: int
    program: int
    difference: int  # in bytes, shard - program
    example: str


@dataclasses.dataclass(frozen=True)
class Seconds:
    """Of a step, as a plan and as a program."""
    shard: float
    program: float

    @property
    def error(self):
        return self.shard / self.program - 1


@dataclasses.dataclass(frozen=True)
class Comparison:
    allocated: Bytes
    requested: Bytes  # at the peak, without what the allocator adds to each block
    reserved: Bytes
    phases: dict  # name -> Bytes
    calls: list
    order: list  # the parts of the step in which collectives come in another order
    tensors: list
    step: Seconds = None  # none where the program's is not known


def compare(shard, program, step_seconds=None):
    return Comparison(
        step=Seconds(*step_seconds) if step_seconds else None,
        allocated=_bytes(shard, program, lambda p: p["peak"]["allocated_bytes"]),
        requested=Bytes(_requested(shard.peak[1:]), _requested(program.peak[1:])),
        reserved=_bytes(shard, program, lambda p: p["peak"]["reserved_bytes"]),
        phases=_phases(shard.profile, program.profile),
        calls=_calls(shard.profile, program.profile),
        order=compare_orders(shard.profile, program.profile, Call, is_left_out),
        tensors=_tensors(shard.peak[1:], program.peak[1:]))


def _bytes(shard, program, of):
    return Bytes(of(shard.profile), of(program.profile))


def _requested(allocations):
    return sum(allocation["requested_bytes"] for allocation in allocations)


def _phases(shard, program):
    """The peak of each phase that both have, and what is held when the last iteration begins."""
    def peaks(profile):
        return {phase["name"]: phase for phase in profile["phases"]}
    of_shard, of_program = peaks(shard), peaks(program)
    found = {}
    for name in of_shard:
        if name in of_program:
            found[name] = Bytes(of_shard[name]["peak"]["allocated_bytes"],
                                of_program[name]["peak"]["allocated_bytes"])
    last = "iteration_1.forward_backward"
    if last in of_shard and last in of_program:
        found["between iterations"] = Bytes(of_shard[last]["before"]["allocated_bytes"],
                                            of_program[last]["before"]["allocated_bytes"])
    return found


def _call(call, group_size):
    ends = 2 if call["kind"] in POINT_TO_POINT else group_size
    return Call(call["kind"], ends, nccl_type(call["dtype"]), call["bytes"])


def _shard_calls(profile, of_program):
    counts = collections.Counter()
    for call in profile["collectives"]:
        ranks, count = call["group_size"], call["executed_count"]
        same = _call(call, ranks)
        if call["kind"] != "all_to_all" or same in of_program:
            counts[same] += count
            continue
        for end in POINT_TO_POINT:
            counts[Call(end, 2, call["dtype"], call["bytes"] // ranks)] += count * ranks
    return counts


def _program_calls(profile):
    counts = collections.Counter()
    for group in (profile.get("program") or {}).get("communicators", []):
        for call in group["calls"]:
            if call["iteration_count"]:
                counts[_call(call, group["size"])] += call["iteration_count"]
    return counts


def is_left_out(call):
    """Whether the shard is known to leave it out."""
    of_rank = call.bytes // call.group_size if call.kind == "all_gather" else call.bytes
    return call.kind == "broadcast" or of_rank <= LARGEST_SCALAR_BYTES or call.group_size == 1


def _calls(shard, program):
    """Those that differ in count, but for what the shard leaves out."""
    of_program = _program_calls(program)
    of_shard = _shard_calls(shard, of_program)
    different = [CountedCall(call, of_shard[call], of_program[call])
                 for call in {**of_shard, **of_program}
                 if of_shard[call] != of_program[call]]
    return sorted((counted for counted in different
                   if counted.shard > counted.program or not is_left_out(counted.call)),
                  key=lambda counted: -counted.call.bytes * abs(counted.shard - counted.program))


def _label(allocation):
    """What it is, layers as one: "activation layers.*.mlp aten::mm"."""
    module = re.sub(r"\.\d+", ".*", allocation.get("module") or "")
    return f"{allocation['category']} {module} {allocation.get('operator') or ''}".strip()


def _tensors(of_shard, of_program):
    """Sizes of which one side has more, the largest difference first. Blocks of equal requests
    may differ by what the allocator does not split off."""
    sides = [collections.defaultdict(list), collections.defaultdict(list)]
    for side, allocations in zip(sides, (of_shard, of_program)):
        for allocation in allocations:
            side[allocation["requested_bytes"]].append(allocation)
    found = []
    for size in {**sides[0], **sides[1]}:
        shard, program = sides[0][size], sides[1][size]
        if len(shard) == len(program):
            continue
        more = shard if len(shard) > len(program) else program
        example = collections.Counter(map(_label, more)).most_common(1)[0][0]
        difference = sum(a["bytes"] for a in shard) - sum(a["bytes"] for a in program)
        found.append(Tensors(size, len(shard), len(program), difference, example))
    return sorted(found, key=lambda tensors: -abs(tensors.difference))
