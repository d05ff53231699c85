"""What trainings of the field add to a drawn configuration: uneven stages, messages that overlap,
instances of the optimizer, other optimizers and types, the layers that have experts, and how these
are split. Each way asks whether it may be, and returns the words with its own."""


def value(words, flag, default=1):
    return int(words[words.index(flag) + 1]) if flag in words else default


def with_value(words, flag, number):
    at = words.index(flag) + 1
    return [*words[:at], str(number), *words[at + 1:]]


def _stages(words):
    return value(words, "--pipeline-model-parallel-size")


def _chunks(words):
    return value(words, "--num-virtual-stages-per-pipeline-rank")


def _data_ranks(words, world_size):
    others = ("--tensor-model-parallel-size", "--context-parallel-size")
    size = _stages(words)
    for flag in others:
        size *= value(words, flag)
    return world_size // size


def _own_ends(draw, words):
    """The first stage, the last one, or both have as many layers as is said."""
    ends = draw.one_of(("first",), ("last",), ("first", "last"))
    inner = _stages(words) - len(ends)
    if inner < 1:
        return words
    own, each = draw.between(1, 3), draw.between(1, 2)
    words = with_value(words, "--num-layers", inner * each + own * len(ends))
    return words + [word for end in ends for word in (f"--decoder-{end}-pipeline-num-layers", str(own))]


def uneven_stages(draw, words):
    is_free = _stages(words) > 1 and _chunks(words) == 1
    if not is_free or "--pipeline-model-parallel-layout" in words or not draw.chance(0.5):
        return words
    return _own_ends(draw, words)


def messages(draw, words):
    """Of interleaved stages."""
    if _chunks(words) == 1 or not draw.chance(0.5):
        return words
    way = draw.one_of("--no-overlap-p2p-communication", "--overlap-p2p-communication-warmup-flush")
    needs_more = way == "--no-overlap-p2p-communication" and _stages(words) == 2
    return words if needs_more else words + [way]


def groups_of_micro_batches(draw, words, world_size):
    """All micro-batches of a step go through a chunk before the next one."""
    if _chunks(words) == 1 or not draw.chance(0.3):
        return words
    micro_batches = value(words, "--global-batch-size") // value(words, "--micro-batch-size")
    return words + ["--microbatch-group-size-per-virtual-pipeline-stage",
                    str(micro_batches // _data_ranks(words, world_size))]


def optimizer(draw, words, world_size):
    """Instances of the distributed optimizer, which has no SGD; or SGD."""
    if "--use-distributed-optimizer" not in words:
        return words + ["--optimizer", "sgd"] if draw.chance(0.2) else words
    if _data_ranks(words, world_size) < 4 or "--num-experts" in words or not draw.chance(0.4):
        return words
    return words + ["--num-distributed-optimizer-instances", "2"]


def types(draw, words):
    """fp16 with its loss scale. Gradients are reduced in 16 bits only beside bf16."""
    if "--fp8-format" in words or "--fp4-format" in words or not draw.chance(0.15):
        return words
    return ["--fp16" if word == "--bf16" else word for word in words if word != "--grad-reduce-in-bf16"]


def vocabulary(draw, words):
    if not draw.chance(0.3):
        return words
    return words + ["--make-vocab-size-divisible-by", str(draw.one_of(64, 100, 1000))]


def expert_layers(draw, words):
    """Every second layer has experts, or each tensor rank has whole ones."""
    if value(words, "--num-layers") % 2 == 0 and draw.chance(0.4):
        words = words + ["--moe-layer-freq", "2"]
    if value(words, "--tensor-model-parallel-size") > 1 and draw.chance(0.4):
        words = words + ["--expert-tensor-parallel-size", "1"]
    return words


def routing(draw, words):
    """Scores of DeepSeek-V3; experts with a capacity."""
    if "sinkhorn" in words:
        return words
    if "--moe-router-pre-softmax" not in words and draw.chance(0.4):
        words = words + ["--moe-router-score-function", "sigmoid"]
    if "allgather" not in words and draw.chance(0.3):
        words = words + ["--moe-expert-capacity-factor", "1.0", "--moe-pad-expert-input-to-capacity"]
    return words


def vary(draw, words, world_size):
    words = optimizer(draw, messages(draw, uneven_stages(draw, words)), world_size)
    words = vocabulary(draw, types(draw, words))
    if "--num-experts" in words:
        words = routing(draw, expert_layers(draw, words))
    return groups_of_micro_batches(draw, words, world_size)
