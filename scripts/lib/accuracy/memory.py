"""Memory: peaks of PyTorch's allocator, and totals in nvidia-smi's terms."""
from .errors import Reading
from .estimated import compare_estimates
from .plans import plan_of
from .rows import LeftOut

NAME = "memory"
HELP = "peak memory of a rank"
UNIT = ("GiB", 1 << 30)
NOTES = ()

ALLOCATED, RESERVED, TOTAL = "allocated peak", "reserved peak", "nvidia-smi total"
GIB, MIB, GB = 1 << 30, 1 << 20, 10 ** 9

# key of `measured` -> (quantity, bytes of one, whose peak). Judged by the first.
FIGURES = {
    "peak_allocated_gib_max_rank": (ALLOCATED, GIB, "largest"),
    "peak_allocated_mib": (ALLOCATED, MIB, "largest"),
    "mem_max_allocated_bytes_last_step": (ALLOCATED, 1, "last rank"),
    "peak_allocated_gib_rank_0": (ALLOCATED, GIB, "first rank"),
    "peak_reserved_gib_max_rank": (RESERVED, GIB, "largest"),
    "peak_reserved_mib": (RESERVED, MIB, "largest"),
    "peak_memory_gib": (RESERVED, GIB, "largest"),
    # nvidia-smi prints MiB. The chronicle has a run at 80 of these GB, which a card of 81,251 MiB
    # holds in thousands of MiB only.
    "peak_memory_gb_nvidia_smi": (TOTAL, 1000 * MIB, "largest"),
}
# Sources whose framework has buffers and kernels that no framework has. Their times are compared.
NO_FRAMEWORK = {
    "torchtune": "no framework keeps what torchtune keeps",
    "internevo": "the internevo framework has the layers of plain, not InternEvo's",
}
COLUMNS = {ALLOCATED: "allocated_peak_bytes", RESERVED: "reserved_peak_bytes", TOTAL: "total_bytes"}


def _peak(estimate, quantity, whose):
    classes = estimate["rank_classes"]  # in order of stages
    whose_classes = {"first rank": classes[:1], "last rank": classes[-1:], "largest": classes}
    return max(row[COLUMNS[quantity]] for row in whose_classes[whose])


def _figures(row):
    found = [(FIGURES[key], value) for key, value in row.measured.items()
             if key in FIGURES and value is not None]
    return sorted(found, key=lambda figure: list(COLUMNS).index(figure[0][0]))


def _prepare(row):
    if row.source in NO_FRAMEWORK:
        raise LeftOut(NO_FRAMEWORK[row.source])
    return plan_of(row), lambda estimate: [
        Reading(row.id, row.label, quantity, _peak(estimate, quantity, whose), value * unit)
        for (quantity, unit, whose), value in _figures(row)]


def compare(rows, onerank, every=1):
    """(readings, left out as (id, reason)) of the rows that have a memory figure."""
    readings, left_out = compare_estimates([row for row in rows if _figures(row)], onerank, _prepare,
                                           every)
    readings.sort(key=lambda reading: list(COLUMNS).index(reading.quantity))
    return readings, left_out
