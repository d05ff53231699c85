"""Rows of published, measured runs."""
import dataclasses
import json


class InputError(Exception):
    """What the user gave is wrong; the message says what, where and the way out."""


class LeftOut(Exception):
    """A row cannot be compared; the message is the reason."""


APART = {"moe": "-experts", "peft": "-adapters"}


@dataclasses.dataclass(frozen=True)
class Row:
    """One run: how it was configured, and what was measured (keys differ from source to source)."""
    id: str
    source: str
    category: str
    config: dict
    measured: dict
    complete: bool
    missing: tuple
    flags: tuple
    kinds: tuple = ("memory", "time")  # of what was measured, what is worth comparing
    group: str = None  # rows of one group differ in few things: a sweep

    @property
    def label(self):
        """What it is counted under: a source's mixtures of experts and adapters are apart from its dense models."""
        return self.source + APART.get(self.category, "")


def _row(entry, place):
    if not isinstance(entry, dict):
        raise InputError(f"{place}: a row is an object")
    for key, kind in (("id", str), ("config", dict), ("measured", dict)):
        if not isinstance(entry.get(key), kind):
            raise InputError(f'{place}: a row needs "{key}", a JSON {kind.__name__}')
    return Row(id=entry["id"], source=entry.get("source_key", "rows"),
               category=entry.get("category", "dense"), config=entry["config"],
               measured=entry["measured"], complete=entry.get("complete", True),
               missing=tuple(entry.get("missing", ())), flags=tuple(entry.get("flags", ())),
               kinds=tuple(entry.get("kind", Row.kinds)),
               group=entry.get("group"))


def read_rows(path):
    """All rows of a file shaped like scripts/data/ground-truth.json. Throws InputError."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}") from error
    entries = document.get("rows") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise InputError(f'{path}: the document is an object with a list "rows"')
    return [_row(entry, f"{path}: rows[{index}]") for index, entry in enumerate(entries)]
