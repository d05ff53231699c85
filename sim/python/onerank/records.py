"""A JSON document as frozen dataclasses: they can be pickled, and a notebook shows them as tables."""
from __future__ import annotations

import dataclasses
import functools
import html
from typing import Any, Iterable, Mapping

_LONGEST_TUPLE = 80  # characters of a tuple that is shown inside of a record


def record(name: str, value: Any) -> Any:
    """An object becomes a dataclass `name`, the ones in it are named by their keys; a list becomes a tuple of such.

    An object with a key that cannot be a field, such as a number, stays a dictionary.
    """
    if isinstance(value, list):
        entries = [record(name, entry) for entry in value]
        return Records(entries) if entries and all(isinstance(entry, Record) for entry in entries) else tuple(entries)
    if not isinstance(value, dict):
        return value
    if not all(key.isidentifier() for key in value):
        return {key: record(name, entry) for key, entry in value.items()}
    return _made(name, {key: record(class_name(key), entry) for key, entry in value.items()})


def class_name(key: str) -> str:
    return "".join(word.capitalize() for word in key.split("_"))


class Record:
    """What the dataclasses have in common."""

    def __reduce__(self):
        return _made, (type(self).__name__, _fields(self))

    def __repr__(self) -> str:
        """Its own values; of a record in it only the name, of many the number."""
        return f"{type(self).__name__}({', '.join(f'{key}={_short(value)}' for key, value in _fields(self).items())})"

    def _repr_html_(self) -> str:
        return _table(type(self).__name__, [[key, value] for key, value in _fields(self).items()])


class Records(tuple):
    """A tuple of records."""

    def __repr__(self) -> str:
        return f"({', '.join(map(repr, self))}{',' if len(self) == 1 else ''})"

    def _repr_html_(self) -> str | None:
        if not all(isinstance(entry, Record) for entry in self):
            return None  # of dictionaries, as dataclasses.asdict leaves them
        columns = list(dict.fromkeys(key for entry in self for key in _fields(entry)))
        rows = [[_fields(entry).get(column) for column in columns] for entry in self]
        return _table(f"{len(self)} x {type(self[0]).__name__}", rows, columns)


def _made(name: str, fields: Mapping[str, Any]) -> Record:
    return _record_class(name, tuple(fields))(**fields)


@functools.cache
def _record_class(name: str, fields: tuple[str, ...]) -> type:
    return dataclasses.make_dataclass(name, fields, bases=(Record,), namespace={"__module__": __name__},
                                      frozen=True, repr=False)


def _fields(of: Record) -> dict[str, Any]:
    return {field.name: getattr(of, field.name) for field in dataclasses.fields(of)}


def _short(value: Any) -> str:
    if isinstance(value, Records):
        return f"({len(value)} x {type(value[0]).__name__})"
    if isinstance(value, Record):
        return f"{type(value).__name__}(...)"
    text = repr(value)
    is_long = isinstance(value, tuple) and len(text) > _LONGEST_TUPLE
    return f"({len(value)} x {type(value[0]).__name__})" if is_long else text


def _cell(value: Any) -> str:
    if value is None:
        return "<td></td>"
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    text = f"{value:,}" if isinstance(value, int) and number else value if isinstance(value, str) else _short(value)
    return f"<td style='text-align: {'right' if number else 'left'}'>{html.escape(text)}</td>"


def _table(caption: str, rows: Iterable[Iterable[Any]], columns: Iterable[str] = ()) -> str:
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return (f"<table><caption>{html.escape(caption)}</caption>{f'<thead><tr>{head}</tr></thead>' if head else ''}"
            f"<tbody>{body}</tbody></table>")
