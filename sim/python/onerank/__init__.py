"""Onerank from Python: memory, time and cost of a training job, from one executed rank.

    import onerank
    estimate = onerank.estimate(model="llama3-8b", gpu="h100-sxm", nodes=1, tp=2, zero_stage=1)
    estimate.verdict.fits, estimate.time.iteration_seconds
    onerank.to_pandas(estimate.rank_classes)

Each function calls the program `onerank` and gives its JSON document as a frozen dataclass; `onerank schema
estimate` (profile, verdict) tells every field of one, with its unit. They can be pickled, so that a pool of processes
can work through many plans, and a notebook shows them as tables.

Changes of a plan are the program's flags: `tp=2` is `--tp 2`, `sharp=True` is `--sharp`, a list is joined by
commas. A key of the plan itself is given as `**{"training.seed": 7}`. A value of None is left out.
"""
from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sysconfig
from typing import Any, Callable, Iterable, Mapping, Sequence

from onerank.records import class_name, record

__all__ = ["OnerankError", "built_for_torch", "check", "estimate", "exec", "run", "to_pandas"]

# Exit codes of a document: it fits, or it does not.
_HAS_DOCUMENT = (0, 1)
# Of a program that failed, in the error: a traceback is rarely longer.
_LINES_OF_OUTPUT = 60

Plan = "Mapping[str, Any] | str | os.PathLike | None"


class OnerankError(Exception):
    """What the program refused, in its words."""

    def __init__(self, message: str, exit_code: int):
        super().__init__(message, exit_code)  # both, so that it can be pickled
        self.exit_code = exit_code  #: 2 bad input, 3 this machine lacks something, 70 a bug in Onerank

    def __str__(self) -> str:
        return self.args[0]


def estimate(plan: Plan = None, **changes: Any) -> Any:
    """Memory, time and cost of the whole cluster (`onerank estimate`). `plan` is a file or a dictionary."""
    return _ask("estimate", plan, changes)


def check(plan: Plan = None, **changes: Any) -> Any:
    """Whether the plan fits (`onerank check`); `exit_code` is 1 also where it is fuller than `health` allows."""
    return _ask("check", plan, changes)


def run(plan: Plan = None, **changes: Any) -> Any:
    """The profile of one executed rank (`onerank run`)."""
    return _ask("run", plan, changes)


def exec(command: str | Sequence[str | os.PathLike], **options: Any) -> Any:
    """The profile of a PyTorch program of yours as one rank (`onerank exec`); a list of them with `ranks`.

    A command that is one string is divided into words as a shell does. The error of a program that fails has the end
    of what it printed.
    """
    words = shlex.split(command) if isinstance(command, str) else command
    return _document(["exec", "--json", *_flags(options), "--", *words], message=_end_of_output)


def to_pandas(records: Any) -> Any:
    """One document or many as a pandas.DataFrame; fields of fields get columns such as `verdict.fits`."""
    import pandas

    many = records if isinstance(records, Iterable) else [records]
    return pandas.json_normalize([dataclasses.asdict(record) for record in many])


def built_for_torch() -> str | None:
    """The version of torch that ranks of a plan run with, such as 2.11.0."""
    listed = _document(["list", "torch", "--json"]).entries
    return next((torch.wheel.partition("+")[0] for torch in listed if torch.built_for), None)


def _ask(subcommand: str, plan: Plan, changes: Mapping[str, Any]) -> Any:
    arguments = [subcommand, "--json", *_flags(changes)]
    if isinstance(plan, Mapping):
        return _document([*arguments, "--plan", "/dev/stdin"], json.dumps(plan))
    return _document(arguments if plan is None else [*arguments, "--plan", plan])


def _flags(values: Mapping[str, Any]) -> list[str]:
    return [_flag(name, value) for name, value in values.items() if value is not None]


def _flag(name: str, value: Any) -> str:
    if "." in name:
        return f"--set={name}={json.dumps(value)}"
    flag = "--" + name.replace("_", "-")
    if value is True:
        return flag
    if isinstance(value, (list, tuple)):
        value = ",".join(map(str, value))
    return f"{flag}={str(value).lower() if value is False else value}"


def _program() -> str:
    """ONERANK_PROGRAM, or the program of the Python package, or the one on PATH."""
    beside = pathlib.Path(sysconfig.get_path("scripts"), "onerank")
    program = os.environ.get("ONERANK_PROGRAM") or (str(beside) if beside.exists() else shutil.which("onerank"))
    if not program:
        raise OnerankError("there is no program `onerank`: put it on PATH, or set ONERANK_PROGRAM to its path", 3)
    return program


def _document(arguments: Sequence[str | os.PathLike], text: str | None = None,
              message: Callable[[str], str] | None = None) -> Any:
    done = subprocess.run([_program(), *arguments], input=text, capture_output=True, text=True, errors="replace")
    if done.returncode not in _HAS_DOCUMENT or not done.stdout:
        told = (message or _error)(done.stderr)
        raise OnerankError(told or f"onerank ended with exit code {done.returncode}", done.returncode)
    document = json.loads(done.stdout)
    return record(class_name(document["kind"]) if isinstance(document, dict) else "RankProfile", document)


def _error(output: str) -> str:
    """From the first error on; before it stands how far the program was."""
    error = re.search(r"^error: ", output, re.MULTILINE)
    return (output[error.end():] if error else output).strip()


def _end_of_output(output: str) -> str:
    """With what a program printed before it failed, such as its traceback."""
    end = "\n".join(output.strip().splitlines()[-_LINES_OF_OUTPUT:])
    return end if "\nerror: " in end else end.removeprefix("error: ")
