"""Writes comparisons as a table and as JSON, and judges them by the stated bounds."""
import dataclasses
import json

LARGEST_LISTED = 6


@dataclasses.dataclass(frozen=True)
class Row:
    configuration: object
    comparison: object = None  # none where a run failed
    failure: str = ""


def _cell(counted):
    return f"{counted.shard - counted.program:+,} ({counted.error:+.3%})"


@dataclasses.dataclass(frozen=True)
class Judge:
    """Bounds are of the program's allocated peak."""
    program: str  # its name in what is printed
    kind: str  # of the document
    bound: float
    close: float
    close_share: dict  # of a family: how many of its configurations are to be this close

    def breaches(self, rows):
        """What exceeds the bounds, one sentence each. Runs that failed are not judged."""
        found = []
        compared = [row for row in rows if row.comparison]
        for row in compared:
            error = row.comparison.allocated.error
            if abs(error) > self.bound:
                found.append(f"{row.configuration.name}: the allocated peak is {error:+.3%} off, "
                             f"more than {self.bound:.1%}")
            if row.comparison.calls:
                found.append(f"{row.configuration.name}: {len(row.comparison.calls)} kinds of "
                             "collectives differ")
            if row.comparison.order:
                found.append(f"{row.configuration.name}: collectives come in another order in "
                             f"{' and '.join(part.part for part in row.comparison.order)}")
        for family, share in self.close_share.items():
            errors = [abs(row.comparison.allocated.error) for row in compared
                      if row.configuration.family == family]
            close = sum(error <= self.close for error in errors)
            if errors and close < share * len(errors):
                found.append(f"{family}: {close} of {len(errors)} allocated peaks are within "
                             f"{self.close:.1%}, fewer than {share:.0%}")
        return found

    def table(self, rows):
        lines = [f"| configuration | rank | {self.program}'s peak | shard's peak | allocated "
                 "| requested | reserved | between iterations | first iteration | collectives that differ "
                 "| in another order | step as a program, ms | as a plan |",
                 "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"]
        for row in rows:
            name, rank = row.configuration.name, row.configuration.rank
            if not row.comparison:
                lines.append(f"| {name} | {rank} | not compared: {row.failure.splitlines()[0]} "
                             "| | | | | | | | | | |")
                continue
            found = row.comparison
            phases = [found.phases.get(key) for key in ("between iterations",
                                                        "iteration_0.forward_backward")]
            cells = [name, rank, f"{found.allocated.program:,}", f"{found.allocated.shard:,}",
                     _cell(found.allocated), _cell(found.requested), _cell(found.reserved),
                     *(_cell(phase) if phase else "" for phase in phases), len(found.calls),
                     sum(part.moved for part in found.order),
                     *((f"{found.step.program * 1e3:.1f}", f"{found.step.error:+.1%}")
                       if found.step else ("", ""))]
            lines.append("| " + " | ".join(map(str, cells)) + " |")
        return "\n".join(lines)

    def details(self, row):
        """What differs, the largest first."""
        lines = [f"{row.configuration.name}, rank {row.configuration.rank} of "
                 f"{row.configuration.world_size}: {' '.join(row.configuration.words)}"]
        if not row.comparison:
            return "\n".join([*lines, f"  not compared: {row.failure}"])
        for name, phase in row.comparison.phases.items():
            lines.append(f"  {name}: {_cell(phase)}")
        for counted in row.comparison.calls[:LARGEST_LISTED]:
            call = counted.call
            lines.append(f"  {call.kind} of {call.group_size} ranks, {call.dtype}, {call.bytes:,} "
                         f"bytes: {counted.shard} times, {self.program} {counted.program}")
        for part in row.comparison.order:
            lines.append(f"  {part.moved} of {part.calls} collectives of {part.part} in another "
                         f"order; at {part.place}: {part.shard}; {self.program}: {part.program}")
        for tensors in row.comparison.tensors[:LARGEST_LISTED]:
            lines.append(f"  at the peak {tensors.shard} tensors of {tensors.bytes:,} bytes, "
                         f"{self.program} {tensors.program} ({tensors.difference:+,}): "
                         f"{tensors.example}")
        return "\n".join(lines)

    def document(self, rows, seed):
        def as_json(row):
            return {"configuration": dataclasses.asdict(row.configuration), "failure": row.failure,
                    "comparison": dataclasses.asdict(row.comparison) if row.comparison else None}
        found = {"schema_version": 1, "kind": self.kind, "seed": seed,
                 "breaches": self.breaches(rows), "rows": list(map(as_json, rows))}
        return json.dumps(found, indent=1, default=sorted)
