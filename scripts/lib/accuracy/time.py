"""Time: seconds of one training iteration.

A source that gives tokens per second or TFLOP/s is converted by its own convention. Within a sweep,
rows are also ranked by speed, tokens per second and GPU.
"""
from .errors import Reading
from .estimated import compare_estimates
from .plans import plan_of
from .rows import LeftOut

NAME = "time"
HELP = "seconds of an iteration"
UNIT = ("s", 1)
QUANTITY = "iteration time"

# Which sources set constants of the model.
NOTES = (
    "Rates of kernels are fitted to published benchmarks of kernels: on B200 SimuMax's (products,"
    " attention; of the machine that its runs were timed on), on A100 Azure's, SimuMax's and"
    " FlashAttention's, on H100 stas00's, XLA's, FBGEMM's and FlashAttention's, on GB200 and GB300 aiconfigurator's and"
    " cudnn-frontend's. How much GPUs differ is taken from"
    " a study of other clusters, what the host takes to issue a call from profiles of other programs"
    " (estimator/data/gpu_variation.json, launch.json). No constant is fitted to the time of a training"
    " run.",)


def _megatron_2021_flops(config):
    """Of one iteration with full recompute (Narayanan et al. 2021, section 3.1)."""
    arch = config["arch"]
    layers, hidden, vocabulary = arch["layers"], arch["hidden"], arch["vocab"]
    tokens, sequence = config["global_batch"] * config["seq"], config["seq"]
    return 96 * tokens * layers * hidden ** 2 * (
        1 + sequence / (6 * hidden) + vocabulary / (16 * layers * hidden))


def _seconds_of_tflops(row, plan, value):
    return _megatron_2021_flops(row.config) / (value * 1e12 * _gpus(plan))


def _gpus(plan):
    return plan["cluster"]["nodes"] * plan["cluster"]["gpus_per_node"]


def _tokens(plan):
    return plan["training"]["global_batch_size"] * plan["training"]["sequence_length"]


# key of `measured` -> seconds of an iteration. The first that a row has counts.
FIGURES = {
    "iteration_s": lambda row, plan, value: value,
    "iteration_ms": lambda row, plan, value: value / 1e3,
    "iteration_time_s_median": lambda row, plan, value: value,
    "tokens_per_s": lambda row, plan, value: _tokens(plan) / value,
    "tokens_per_s_per_gpu": lambda row, plan, value: _tokens(plan) / value / _gpus(plan),
    "tflops_per_gpu": _seconds_of_tflops,
}


def _figure(row):
    return next((key for key in FIGURES if row.measured.get(key) is not None), None)


def _prepare(row):
    plan, key = plan_of(row), _figure(row)
    if NAME not in row.kinds:
        raise LeftOut("; ".join(row.flags) or "measured for its memory alone")
    if key == "tflops_per_gpu" and row.source != "sc21":
        raise LeftOut("TFLOP/s by a formula that is not known here")

    def read(estimate):
        resolved = estimate["plan"]
        measured = FIGURES[key](row, resolved, row.measured[key])
        return [Reading(row.id, row.label, QUANTITY, estimate["time"]["iteration_seconds"], measured,
                        sweep=row.group, work=_tokens(resolved) / _gpus(resolved))]
    return plan, read


def compare(rows, onerank, every=1):
    """(readings, left out as (id, reason)) of the rows of trainings that have a time."""
    rows = [row for row in rows if row.category in ("dense", "moe", "peft") and _figure(row)]
    return compare_estimates(rows, onerank, _prepare, every)
