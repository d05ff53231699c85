"""Rows of whole training runs against the estimates of their plans."""
import collections

from .rows import LeftOut


def compare_estimates(rows, onerank, prepare, every=1):
    """(readings, left out as (id, reason)) of rows, each in the order of the rows.

    `prepare` makes of a row its plan, and a function from the plan's estimate to readings; it
    throws LeftOut with the reason where there is none. With `every` N, one of N rows
    of each source is estimated.
    """
    prepared, left_out = [], []
    seen = collections.Counter()
    for row in rows:
        try:
            entry = (row.id, *prepare(row))
            if seen[row.label] % every == 0:
                prepared.append(entry)
            seen[row.label] += 1
        except LeftOut as reason:
            left_out.append((row.id, str(reason)))
    readings = []
    estimates = onerank.estimates([plan for _, plan, _ in prepared])
    for (row_id, _, read), estimate in zip(prepared, estimates):
        if isinstance(estimate, LeftOut):
            left_out.append((row_id, str(estimate)))
        else:
            readings += read(estimate)
    return readings, left_out
