"""Predicted against measured: one reading a row and quantity, and what they add up to."""
import collections
import dataclasses
import itertools
import math
import statistics


@dataclasses.dataclass(frozen=True)
class Reading:
    row: str  # id
    source: str
    quantity: str  # what was measured, "allocated peak"
    predicted: float
    measured: float
    sweep: str = None  # rows of one sweep are ranked against each other by work / value
    work: float = 1  # what one GPU does in the measured time

    @property
    def error(self):
        """Of the measured value: +0.02 is 2 % too much."""
        return self.predicted / self.measured - 1


def summary(readings):
    errors = [reading.error for reading in readings]
    if not errors:
        return {"rows": 0, "mean_absolute_error": None, "worst_absolute_error": None, "bias": None}
    return {"rows": len(errors),
            "mean_absolute_error": statistics.fmean(map(abs, errors)),
            "worst_absolute_error": max(map(abs, errors)),
            "bias": statistics.fmean(errors)}


def by_quantity(readings):
    groups = collections.defaultdict(list)
    for reading in readings:
        groups[reading.quantity].append(reading)
    return groups


def _by_source(readings):
    groups = collections.defaultdict(list)
    for reading in readings:
        groups[reading.source, reading.quantity].append(reading)
    return groups


SMALLEST_SWEEP = 5
TIE = 0.03  # rows measured as near as this are in no order


def _ranks(values):
    """1 for the smallest; equal values share the mean of their ranks."""
    ordered = sorted(values)
    return [(ordered.index(v) + len(ordered) - ordered[::-1].index(v) + 1) / 2 for v in values]


def rank_correlation(predicted, measured):
    """(Spearman's coefficient over the pairs whose measured values differ by more than TIE, pairs).

    Spearman's is the correlation of ranks, and a correlation is a sum over pairs of the products of
    their differences: pairs can be left out of it. None when no pair is left."""
    pairs = [(i, j) for i, j in itertools.combinations(range(len(measured)), 2)
             if abs(measured[i] - measured[j]) > TIE * min(measured[i], measured[j])]
    a, b = _ranks(predicted), _ranks(measured)
    products = sum((a[i] - a[j]) * (b[i] - b[j]) for i, j in pairs)
    squares = (sum((a[i] - a[j]) ** 2 for i, j in pairs) * sum((b[i] - b[j]) ** 2 for i, j in pairs))
    if not pairs:
        return None, 0
    return (products / math.sqrt(squares) if squares else 0.0), len(pairs)


def sweeps(readings):
    """Rank correlation of speed within each sweep of at least SMALLEST_SWEEP rows."""
    groups = collections.defaultdict(list)
    for reading in readings:
        if reading.sweep:
            groups[reading.sweep].append(reading)
    results = []
    for name, group in groups.items():
        if len(group) < SMALLEST_SWEEP:
            continue
        spearman, pairs = rank_correlation([r.work / r.predicted for r in group],
                                           [r.work / r.measured for r in group])
        results.append({"sweep": name, "rows": len(group), "pairs": pairs, "spearman": spearman})
    return results


def mean_correlation(results):
    found = [result["spearman"] for result in results if result["spearman"] is not None]
    return statistics.fmean(found) if found else None


def mean_errors(readings):
    """Of each source and quantity: how many rows, and the mean of their absolute errors."""
    return {f"{source}, {quantity}": {"rows": len(group),
                                      "mean": round(summary(group)["mean_absolute_error"], 5)}
            for (source, quantity), group in _by_source(readings).items()}


def document(readings, left_out, notes=()):
    """The report as JSON. `overall` is of the quantity that most readings of the first kind have:
    subjects list the quantity that they are judged by first."""
    quantities = by_quantity(readings)
    first = next(iter(quantities), None)
    ranked = sweeps(readings)
    return {
        "overall": {"quantity": first, **summary(quantities.get(first, []))},
        **({"sweeps": ranked, "mean_spearman": mean_correlation(ranked)} if ranked else {}),
        "quantities": [{"quantity": name, **summary(group)} for name, group in quantities.items()],
        "sources": [{"source": source, "quantity": quantity, **summary(group)}
                    for (source, quantity), group in _by_source(readings).items()],
        "rows": [{"id": r.row, "source": r.source, "quantity": r.quantity,
                  "predicted": r.predicted, "measured": r.measured, "error": r.error}
                 for r in readings],
        "left_out": [{"id": row, "reason": reason} for row, reason in left_out],
        "notes": list(notes),
    }


def table(header, lines):
    """A Markdown table that is also readable as text; the first column is left-aligned."""
    lines = [[str(cell) for cell in line] for line in lines]
    widths = [max(len(line[i]) for line in [header, *lines]) for i in range(len(header))]

    def text(line):
        cells = [line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:]))]
        return "| " + " | ".join(cells) + " |"

    rule = "|" + "|".join(["-" * (widths[0] + 2), *("-" * (w + 1) + ":" for w in widths[1:])]) + "|"
    return "\n".join([text(header), rule, *map(text, lines)])


def percent(fraction, signed=False):
    return "-" if fraction is None else f"{fraction * 100:{'+' if signed else ''}.2f} %"


def text(readings, left_out, unit, notes=()):
    """The report as text: a table of sources, one of rows, and why rows are missing. `unit` is
    (name, factor): what a predicted or measured value is divided by, and what it is called then."""
    name, factor = unit
    sources = [[source, quantity, *_cells(summary(group))]
               for (source, quantity), group in _by_source(readings).items()]
    totals = [["all", quantity, *_cells(summary(group))]
              for quantity, group in by_quantity(readings).items()]
    rows = [[r.row, r.quantity, f"{r.measured / factor:.2f}", f"{r.predicted / factor:.2f}",
             percent(r.error, signed=True)] for r in readings]
    parts = [
        table(["source", "quantity", "rows", "mean", "worst", "bias"], sources + totals),
        *_sweep_table(readings),
        table(["row", "quantity", f"measured {name}", f"predicted {name}", "error"], rows),
        _left_out_text(left_out),
        *notes,
    ]
    return "\n\n".join(parts)


def _left_out_text(left_out):
    reasons = collections.Counter(reason for _, reason in left_out)
    return "\n".join([f"Left out: {len(left_out)} rows",
                      *(f"  {count:4}  {reason}" for reason, count in reasons.most_common())])


def _sweep_table(readings):
    ranked = sweeps(readings)
    if not ranked:
        return []
    cell = lambda value: "-" if value is None else f"{value:.2f}"  # noqa: E731
    lines = [[r["sweep"], r["rows"], r["pairs"], cell(r["spearman"])] for r in ranked]
    lines.append(["mean", "", "", cell(mean_correlation(ranked))])
    return [table(["sweep", "rows", f"pairs over {TIE:.0%} apart", "Spearman of speed"], lines)]


def goals_text(goals):
    """How many points keep each goal, and whose curves do not."""
    lines = []
    for goal in goals:
        lines.append(f"{goal['quantity']}: {percent(goal['share_of_points'])} of points within "
                     f"{goal['within']:.0%}, {len(goal['curves_beyond'])} of {goal['curves']} curves "
                     "have points beyond it")
        lines += [f"  {curve}" for curve in goal["curves_beyond"]]
    return "\n".join(lines)


def _cells(result):
    return [result["rows"], percent(result["mean_absolute_error"]),
            percent(result["worst_absolute_error"]), percent(result["bias"], signed=True)]
