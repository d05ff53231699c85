"""Blocks that show a command of Onerank and what it prints."""
import difflib
import functools
import itertools
import os
import pathlib
import re
import subprocess
import tempfile

from .marks import FENCE, Difference

PROGRAM = "build/onerank"
OPEN_FENCE = FENCE + "console"
MORE = "..."
SECONDS = 600
DONE, DOES_NOT_FIT = 0, 1
ALIKE = 0.6  # of the characters of an excerpt, where its words have changed
TIMED = ("run ", "exec ")  # commands whose table of phases ends with what this machine took
HOST_TIME = re.compile(r" +[\d.]+ (us|ms|s)$")


class Examples:
    """Runs commands in a folder that looks like the repository; equal ones once."""

    def __init__(self, root, onerank):
        self._temporary = tempfile.TemporaryDirectory(prefix="onerank-documents-")
        self._folder = pathlib.Path(self._temporary.name)
        for link, target in ("build", onerank.parent), ("scripts", root / "scripts"), (".venv", root / ".venv"):
            (self._folder / link).symlink_to(target)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._temporary.cleanup()

    def update(self, block):
        command = f"{PROGRAM} {block.argument}"
        failure, printed = self._run(command)
        if failure:
            return [Difference(block.where(), failure, is_lost=True)]
        head = [OPEN_FENCE, *f"$ {command}".split("\n")]
        shown = _shown(block.lines)
        differences, shown = _compare(block, shown, printed) if shown else ([], printed)
        lines = [*head, *shown, FENCE]
        if lines != block.lines:
            block.new_lines = lines
            if not differences:
                differences = [Difference(block.where(), f"not written as update-docs writes it: {command}")]
        return differences

    @functools.lru_cache
    def _run(self, command):
        environment = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
        result = subprocess.run(command, shell=True, cwd=self._folder, env=environment, capture_output=True,
                                text=True, timeout=SECONDS, check=False)
        if result.returncode not in (DONE, DOES_NOT_FIT):
            return f"{command}: exit code {result.returncode}\n{result.stderr}", []
        return None, [line.rstrip() for line in result.stdout.rstrip("\n").split("\n")]


def _shown(lines):
    """What a block shows below its command; nothing in a new one."""
    if not lines or not lines[0].startswith(FENCE) or lines[-1] != FENCE:
        return []
    inside = lines[1:-1]
    while inside and inside[0].endswith("\\"):
        inside.pop(0)
    return inside[1:]


def _pieces(shown):
    """Runs of lines without MORE between them, each with the place of its first line."""
    for is_more, group in itertools.groupby(enumerate(shown), lambda entry: entry[1].lstrip().startswith(MORE)):
        piece = list(group)
        while piece and not piece[-1][1]:
            piece.pop()
        while piece and not piece[0][1]:
            piece.pop(0)
        if not is_more and piece:
            yield piece[0][0], [line for _, line in piece]


def _compare(block, shown, printed):
    """Differences, and the lines with what is printed."""
    is_timed = block.argument.startswith(TIMED)
    comparable = [_comparable(line, is_timed) for line in printed]
    if not any(line.lstrip().startswith(MORE) or line.endswith(MORE) for line in shown):
        differences = _compare_all(block, [_comparable(line, is_timed) for line in shown], comparable)
        return differences, printed if differences else shown
    differences, start, lines = [], 0, list(shown)
    head = len(block.lines) - len(shown) - 1
    for first, piece in _pieces(shown):
        piece = [_comparable(line, is_timed) for line in piece]
        at = _place_of(piece, comparable, start)
        if at is None:
            differences.append(Difference(block.where(head + first), f"not printed so: {piece[0]}", is_lost=True))
            continue
        start = at + len(piece)
        for i, (old, new) in enumerate(zip(piece, comparable[at:])):
            if not _equal(old, new):
                differences.append(Difference(block.where(head + first + i), f"\n  - {old}\n  + {new}"))
                lines[first + i] = _cut_as(old, printed[at + i])
    return differences, lines


def _compare_all(block, shown, printed):
    """Of a block from which nothing was cut."""
    changes = [line for line in difflib.ndiff(shown, printed) if line[0] in "+-"]
    return [Difference(block.where(), "\n".join(["", *(f"  {line}" for line in changes)]))] if changes else []


def _comparable(line, is_timed):
    """Without what is another number in every run."""
    return HOST_TIME.sub("", line) if is_timed else line


def _place_of(piece, printed, start):
    """Where the lines are printed, whatever their numbers; else where lines are that are most like them; or
    None."""
    places = range(start, len(printed) - len(piece) + 1)
    for at in places:
        if all(map(_same_words, piece, printed[at:])):
            return at
    likeness, at = max(((_likeness(piece, printed[at:]), -at) for at in places), default=(0, 0))
    return -at if likeness > ALIKE else None


def _likeness(piece, printed):
    def mean(ratio):
        return sum(ratio(difflib.SequenceMatcher(None, _words(old), _words(new)[:len(old)], autojunk=False))
                   for old, new in zip(piece, printed)) / len(piece)
    if mean(difflib.SequenceMatcher.quick_ratio) <= ALIKE:  # an upper bound, and cheap
        return 0
    return mean(difflib.SequenceMatcher.ratio)


def _words(line):
    return re.sub(r"\s+", " ", re.sub(r"-?[\d.,]*\d", "N", line.removesuffix(MORE))).strip()


def _same_words(shown, printed):
    if shown.endswith(MORE):
        return _words(printed).startswith(_words(shown))
    return _words(printed) == _words(shown)


def _equal(shown, printed):
    if shown.endswith(MORE):
        return printed.startswith(shown.removesuffix(MORE))
    return shown == printed


def _cut_as(shown, printed):
    return printed[:len(shown) - len(MORE)] + MORE if shown.endswith(MORE) else printed
