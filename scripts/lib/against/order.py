"""The order in which a rank asks for its collectives: the shard's against the program's.

The shard's profile has one micro-batch of each model chunk, and what happens once in a step; the program's
trace has the whole step. So the shard's are repeated here as Megatron-LM's schedule does: forwards in
the order of chunks and micro-batches, what happens once in the first of them; backwards in the order
of the chunks from the last, what happens once in the last of them. Forwards, backwards and the rest are compared
apart: how a schedule mixes them is its own. Messages between stages, and of rings, are left out.

FSDP2 and DeepSpeed call collectives from hooks of the whole model, which belong to none of its modules, and so to
no part. Without a pipeline a forward and its backward follow each other, and the step is one sequence,
wherever the program's trace cuts it: it may begin with what the step before left to do. In a pipeline, and where
Megatron-LM overlaps its gathers of parameters, calls that one makes in another part than the other (gathers that
come once in a step, a loss outside of all modules) are compared among themselves.

Where forwards run in pieces beside backwards (--overlap-moe-expert-parallel-comm), no order is compared: the program's
trace does not tell whose pieces its side stream runs.

A call that only one of the two makes has no place in the other's order; it is counted among the calls.
"""
import collections
import dataclasses
import difflib

PARTS = ("forward", "backward", "rest")
STEP = "step"
HOOKED_FRAMEWORKS = ("transformers", "deepspeed", "torchtitan")
PART_OF_DIRECTION = ("forward", "backward", "backward", "rest", "rest")

# Numbers in the profiles' columns.
ORDER_COLLECTIVE, TRACE_LAUNCH = 1, 0
BETWEEN = 3
MAIN_STREAM = 0


def nccl_type(dtype):
    """As which NCCL sends it: it has no booleans."""
    return "Byte" if dtype == "Bool" else dtype


@dataclasses.dataclass(frozen=True)
class OrderedCall:
    """`beside`: on a stream of its own, so that kernels go on."""
    call: object
    beside: bool


@dataclasses.dataclass(frozen=True)
class OrderedPart:
    """A part of the step in which the order differs."""
    part: str
    calls: int  # of the program
    moved: int  # of them, those that the shard does not make at that place
    place: int  # of the first of them
    shard: str
    program: str


def compare_orders(shard, program, call_of, is_left_out):
    """The parts that differ. `call_of` makes a Call of a kind, a group's size, a type and bytes."""
    of_shard = shard_order(shard, call_of, is_left_out)
    if of_shard is None or shard["plan"]["parallelism"].get("overlap_moe_expert_parallel_comm"):
        return []
    of_program = program_order(program, call_of, is_left_out, STEP if STEP in of_shard else None)
    if of_program is None:
        return []
    both = _made(of_shard) & _made(of_program)
    of_shard, of_program = ({part: _among(both, calls) for part, calls in parts.items()}
                            for parts in (of_shard, of_program))
    if STEP not in of_shard and _gathers_from_hooks(shard):
        of_shard, of_program = _with_parts_of_both(of_shard, of_program)
    for part in {STEP, "rest"} & set(of_shard):
        of_program[part] = _cut_alike(of_program[part], of_shard[part])
    found = [_compare(part, calls, of_program[part]) for part, calls in of_shard.items()]
    return [part for part in found if part]


def _with_parts_of_both(of_shard, of_program):
    """Both by the part of the shard, and of the program where that is another one."""
    def parts_of(parts):
        return {call: " and ".join(part for part in PARTS if call in _made({part: parts[part]}))
                for call in _made(parts)}
    in_shard, in_program = parts_of(of_shard), parts_of(of_program)

    def divided(parts):
        found = {part: [] for part in PARTS}
        for part in PARTS:
            for ordered in parts[part]:
                own, other = in_shard[ordered.call], in_program[ordered.call]
                key = part if own == other else f"{own} ({other} of the program)"
                found.setdefault(key, []).append(ordered)
        return found
    return divided(of_shard), divided(of_program)


def _made(parts):
    return {ordered.call for calls in parts.values() for ordered in calls}


def _among(both, calls):
    return [ordered for ordered in calls if ordered.call in both]


def _cut_alike(program, shard):
    """The program's step, or the rest of it, cut where the shard's is, if it is the same then."""
    turned = (program[place:] + program[:place] for place in range(len(program)))
    return next((step for step in turned if step == shard), program)


def _is_hooked(profile):
    return profile["plan"].get("training", {}).get("framework") in HOOKED_FRAMEWORKS


def _gathers_from_hooks(profile):
    """Megatron-LM with --overlap-param-gather, too, starts the gathers of a step in the next forward."""
    return _is_hooked(profile) or profile["plan"]["parallelism"]["overlap_param_gather"]


def _is_one_sequence(profile):
    parallelism = profile["plan"]["parallelism"]
    return _is_hooked(profile) and parallelism["pipeline"] == parallelism["virtual_stages"] == 1


def _compare(part, shard, program):
    changes = [change for change in difflib.SequenceMatcher(None, shard, program, autojunk=False)
               .get_opcodes() if change[0] != "equal"]
    if not changes:
        return None
    _, shard_begin, shard_end, begin, end = changes[0]
    return OrderedPart(part, len(program), sum(max(s1 - s0, p1 - p0)
                                               for _, s0, s1, p0, p1 in changes),
                       begin, _words(shard[shard_begin:shard_end]), _words(program[begin:end]))


def _words(calls, most=3):
    if not calls:
        return "nothing"
    words = [f"{ordered.call.kind} of {ordered.call.group_size} ranks, {ordered.call.dtype}, "
             f"{ordered.call.bytes:,} bytes{' beside kernels' if ordered.beside else ''}"
             for ordered in calls[:most]]
    more = [f"{len(calls) - most} more"] if len(calls) > most else []
    return "; ".join(words + more)


def shard_order(profile, call_of, is_left_out):
    """The calls of a whole step by part."""
    order, records = profile.get("order"), profile["collectives"]
    if not order:
        return None
    events, plan = order["events"], profile["plan"]["parallelism"]

    hooks = plan["overlap_grad_reduce"] and not _reduces_after_backward(profile)

    def part_of(direction, chunk):  # a chunk's gradients may be summed from hooks of autograd
        in_backward = direction == BETWEEN and chunk >= 0 and hooks
        return "backward" if in_backward else PART_OF_DIRECTION[direction]
    calls = [(part_of(direction, chunk), chunk, item, stream != MAIN_STREAM)
             for kind, direction, chunk, item, stream
             in zip(events["kind"], events["direction"], events["chunk"], events["item"],
                    events["stream"])
             if kind == ORDER_COLLECTIVE]
    shown = collections.Counter(item for _, _, item, _ in calls)
    parts = collections.defaultdict(list)  # by part and chunk: (call, whether each micro-batch has it)
    for part, chunk, item, beside in calls:
        record = records[item]
        call = call_of(record["kind"], record["group_size"], nccl_type(record["dtype"]),
                       record["bytes"])
        if record["kind"] in ("send", "recv") or is_left_out(call):
            continue
        repeats = record["executed_count"] > shown[item]
        parts[part, chunk if part != "rest" else 0].append((OrderedCall(call, beside), repeats))
    chunks, micro_batches, together = _schedule(profile)
    forward = [(chunk, micro_batch)
               for first in range(0, micro_batches, together)
               for chunk in range(chunks)
               for micro_batch in range(first, min(first + together, micro_batches))]
    backward = [(chunks - 1 - chunk, micro_batch) for chunk, micro_batch in forward]

    def repeated(part, places, when_once):
        return [call for chunk, micro_batch in places for call, repeats in parts[part, chunk]
                if repeats or micro_batch == when_once]
    if _is_one_sequence(profile):
        together = [call for micro_batch in range(micro_batches)
                    for part, once in (("forward", 0), ("backward", micro_batches - 1))
                    for call in repeated(part, [(0, micro_batch)], once)]
        return {STEP: together + [call for call, _ in parts["rest", 0]]}
    return {"forward": repeated("forward", forward, 0),
            "backward": repeated("backward", backward, micro_batches - 1),
            "rest": [call for call, _ in parts["rest", 0]]}


def _reduces_after_backward(profile):
    """Whether Megatron-LM's schedule starts the reductions of a chunk (grad_sync_func in
    megatron/core/pipeline_parallel/schedules.py), as it does but for the only chunk of a first stage."""
    plan = profile["plan"]["parallelism"]
    is_one_of_several = plan["pipeline"] > 1 and (profile["coordinate"]["pp"] > 0 or plan["virtual_stages"] > 1)
    return is_one_of_several and not _is_hooked(profile)


def _schedule(profile):
    """The model chunks of a stage, the micro-batches of a step, and how many of them a chunk does
    before the next chunk has its turn."""
    chunks = profile["plan"]["parallelism"]["virtual_stages"]
    micro_batches = profile["micro_batches"]["total"]
    stages = profile["plan"]["parallelism"]["pipeline"]
    return chunks, micro_batches, stages if chunks > 1 else micro_batches


def program_order(profile, call_of, is_left_out, one_part=None):
    """The calls of the traced step by part, or all in one."""
    trace = profile.get("trace")
    if not trace:
        return None
    works, events = trace["works"], trace["events"]
    launches = [(works[item], stream, _part(direction, trace["modules"][module]))
                for kind, stream, item, direction, module
                in zip(events["kind"], events["stream"], events["item"], events["direction"],
                       events["module"])
                if kind == TRACE_LAUNCH]
    kernels = collections.Counter(stream for work, stream, _ in launches
                                  if work["kind"] in ("kernel", "product"))
    main = kernels.most_common(1)[0][0] if kernels else MAIN_STREAM
    parts = {part: [] for part in (PARTS if one_part is None else (one_part,))}
    for work, stream, part in launches:
        group = (profile["program"]["communicators"][work["communicator"]]
                 if work["communicator"] >= 0 else None)
        call = _call(work, group, call_of)
        if call and not is_left_out(call):
            parts[one_part or part].append(OrderedCall(call, stream != main))
    return parts


def _part(direction, module):
    """What a program does outside its modules, and not in autograd, is neither forward nor backward."""
    part = PART_OF_DIRECTION[direction]
    return "rest" if part == "forward" and not module else part


def _call(work, group, call_of):
    """None for what is no collective. The messages of one NCCL group are an all-to-all where every
    member has its part, the rank itself too."""
    if work["kind"] == "collective":
        return call_of(work["name"], group["size"], work["dtype"], work["bytes"])
    if work["kind"] != "messages":
        return None
    sent = [message for message in work["messages"] if message["is_send"]]
    if sorted(message["peer"] for message in sent) != list(range(group["size"])):
        return None
    return call_of("all_to_all", group["size"], work["dtype"],
                   sum(message["bytes"] for message in sent))
