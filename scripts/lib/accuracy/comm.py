"""Communication: time of collectives against published nccl-tests and torch benchmarks, size by size.

Constants (estimator/data/collective_fit.json) are fitted on the rows in FITTED and on no other;
every other row is held out. The goals: within 15 % above 64 MiB, within 30 % above 256 KiB, on
fabrics that are held out.
"""
import json
import pathlib

from .errors import Reading
from .plans import GPUS, matching
from .rows import LeftOut

NAME = "comm"
HELP = "time of collectives"
UNIT = ("us", 1e-6)
NOTES = ["Constants are fitted on the rows called fitted (estimator/data/collective_fit.json) and on no other.",
         "A row's time has in it what its program's host adds: see _as_measured in scripts/lib/accuracy/comm.py."]
DATA = ["ground-truth.json", "collectives.json"]

# The rows that the constants are fitted on.
FITTED = {"comm-allreduce-h100x8-azure", "comm-allreduce-a100x8-azure", "comm-allreduce-p5x16-aws",
          "comm-allreduce-p4de-2n-a100", "comm-allreduce-a100-opa-4n"}

# How a row calls its network, from the start -> flags of `onerank comm`. The first match wins.
NETWORKS = [
    ("NVLink3 + 4x100Gb/s EFA", ["--inter-link", "efa-v1-p4d"]),
    ("NVLink4 + 32x100Gb/s EFA v2", ["--inter-link", "efa-v2-p5"]),
    ("NVLink5 + 8x400Gb/s EFA v4", ["--inter-link", "efa-v4-p6b200"]),
    ("8x400Gb/s NDR + IB SHARP", ["--inter-link", "ib-ndr-400", "--sharp"]),
    ("NVL72 + 400Gb/s NDR", ["--inter-link", "ib-ndr-400"]),
    # Its log has two rings, which leave and enter a machine through one of the four cards.
    ("OmniPath (JeanZay)", ["--inter-link", "opa-100", "--nics-per-node", "1"]),
    ("NVL72", []), ("NVLink2", []), ("NVLink3/NVSwitch", []), ("NVLink4/NVSwitch", []),
    ("NVLink5", []),
]

# One launch by the host, and a call from PyTorch that finds the GPU idle ("some 20-30us": stas00/ml-engineering,
# all_reduce_bench.py, which since 2026-08 queues its calls to hide it).
LAUNCH_FILE = pathlib.Path(__file__).resolve().parents[3] / "estimator/data/launch.json"
LAUNCH_SECONDS = json.loads(LAUNCH_FILE.read_text(encoding="utf-8"))["kernel_seconds"]
TORCH_CALL_SECONDS = 25e-6

KIB, MIB = 1 << 10, 1 << 20
BANDS = [("above 64 MiB", 64 * MIB, 0.15), ("256 KiB to 64 MiB", 256 * KIB, 0.30),
         ("below 256 KiB", 0, None)]  # name, exceeds so many bytes, goal
ROLES = ("held out", "fitted")
QUANTITIES = [f"{role}, {band}" for role in ROLES for band, _, _ in BANDS]


def _flag(table, text, what):
    return matching(table, text, what, "is not in the database")


def _flags(row):
    config = row.config
    if not row.complete:
        raise LeftOut("incomplete: the row has no curve, or does not say its machines")
    if config["collective"] not in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all"):
        raise LeftOut(f"{config['collective']} is not a collective of NCCL")
    return [config["collective"], "--gpu", _flag(GPUS, config["gpu"], "GPU"),
            "--nodes", str(config["nodes"]), "--gpus-per-node",
            str(config["gpus"] // config["nodes"]),
            *_flag(NETWORKS, config.get("interconnect", "an unnamed network"), "network"),
            *(["--algorithm", config["algorithm"]] if "algorithm" in config else []),
            *(["--nccl-version", config["nccl"]] if "nccl" in config else []),
            *([] if config.get("nvls", True) else ["--no-nvls"])]


def _as_measured(row, seconds):
    """What the row's program would have printed of a collective that takes so long on the GPUs.

    A thread that launches for several GPUs in turn takes at least its launches; where each call is
    waited for, the host's work is in it.
    """
    launches = row.config.get("gpus_per_thread", 1) * LAUNCH_SECONDS
    return max(seconds, launches) + (TORCH_CALL_SECONDS if row.config.get("waits_for_each_call") else 0)


def _seconds(row, point):
    """The measured time, from whatever column the source prints exactly enough; None for none."""
    ranks, size = row.config["gpus"], point["bytes"]
    factor = 2 * (ranks - 1) / ranks if row.config["collective"] == "all_reduce" else (ranks - 1) / ranks
    if point.get("time_us"):
        return point["time_us"] * 1e-6
    if point.get("algo_gbps"):  # bits, and counts sending and receiving
        return 2 * 8 * size / (point["algo_gbps"] * 1e9)
    if point.get("busbw", 0) >= 1:  # two decimals: within 1 %
        return size * factor / (point["busbw"] * 1e9)
    if point.get("busbw_gbps"):  # bits
        return 8 * size * factor / (point["busbw_gbps"] * 1e9)
    return None


def _quantity(row, size):
    role = "fitted" if row.id in FITTED else "held out"
    band = next(name for name, above, _ in BANDS if size > above)
    return f"{role}, {band}"


def compare(rows, onerank):
    """(readings, left out) of the rows that are curves of collectives."""
    readings, left_out = [], []
    for row in rows:
        if row.category != "comm":
            continue
        try:
            flags = _flags(row)
            points = [(point["bytes"], _seconds(row, point)) for point in row.measured["series"]]
            points = [(size, seconds) for size, seconds in points if seconds]
            predicted = onerank.collective_seconds(flags, [size for size, _ in points])
        except LeftOut as reason:
            left_out.append((row.id, str(reason)))
            continue
        readings += [Reading(f"{row.id} at {size}", row.id, _quantity(row, size),
                             _as_measured(row, guess), seconds)
                     for (size, seconds), guess in zip(points, predicted)]
    readings.sort(key=lambda reading: QUANTITIES.index(reading.quantity))
    return readings, left_out


def goals(readings):
    """For each goal the share of held-out points that keep it, and the curves that do not."""
    result = []
    for band, _, limit in BANDS:
        chosen = [r for r in readings if r.quantity == f"held out, {band}"]
        if limit is None or not chosen:
            continue
        beyond = sorted({r.source for r in chosen if abs(r.error) > limit})
        result.append({"quantity": f"held out, {band}", "within": limit,
                       "share_of_points": sum(abs(r.error) <= limit for r in chosen) / len(chosen),
                       "curves": len({r.source for r in chosen}), "curves_beyond": beyond})
    return result
