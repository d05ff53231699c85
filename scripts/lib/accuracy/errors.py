"""Predicted against measured: one reading a row and quantity, and what they add up to."""
import collections
import dataclasses
import statistics


@dataclasses.dataclass(frozen=True)
class Reading:
    row: str  # id
    source: str
    quantity: str  # what was measured, "allocated peak"
    predicted: float
    measured: float

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


def document(readings, left_out):
    """The report as JSON. `overall` is of the quantity that most readings of the first kind have:
    subjects list the quantity that they are judged by first."""
    quantities = by_quantity(readings)
    first = next(iter(quantities), None)
    return {
        "overall": {"quantity": first, **summary(quantities.get(first, []))},
        "quantities": [{"quantity": name, **summary(group)} for name, group in quantities.items()],
        "sources": [{"source": source, "quantity": quantity, **summary(group)}
                    for (source, quantity), group in _by_source(readings).items()],
        "rows": [{"id": r.row, "source": r.source, "quantity": r.quantity,
                  "predicted": r.predicted, "measured": r.measured, "error": r.error}
                 for r in readings],
        "left_out": [{"id": row, "reason": reason} for row, reason in left_out],
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


def text(readings, left_out, unit):
    """The report as text: a table of sources, one of rows, and why rows are missing. `unit` is
    (name, factor): what a predicted or measured value is divided by, and what it is called then."""
    name, factor = unit
    sources = [[source, quantity, *_cells(summary(group))]
               for (source, quantity), group in _by_source(readings).items()]
    totals = [["all", quantity, *_cells(summary(group))]
              for quantity, group in by_quantity(readings).items()]
    rows = [[r.row, r.quantity, f"{r.measured / factor:.2f}", f"{r.predicted / factor:.2f}",
             percent(r.error, signed=True)] for r in readings]
    reasons = collections.Counter(reason for _, reason in left_out)
    parts = [
        table(["source", "quantity", "rows", "mean", "worst", "bias"], sources + totals),
        table(["row", "quantity", f"measured {name}", f"predicted {name}", "error"], rows),
        f"Left out: {len(left_out)} rows",
        *(f"  {count:4}  {reason}" for reason, count in reasons.most_common()),
    ]
    return "\n\n".join(parts[:3]) + "\n" + "\n".join(parts[3:])


def _cells(result):
    return [result["rows"], percent(result["mean_absolute_error"]),
            percent(result["worst_absolute_error"]), percent(result["bias"], signed=True)]
