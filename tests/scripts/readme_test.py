#!/usr/bin/python3
"""Runs every command that README.md shows with its output, and compares what it prints.

    readme_test.py ONERANK [--update] [--only TEXT]

A line "..." stands for any lines, "..." at the end of one for the rest of it. --update writes what was printed
into README.md, where only numbers differ. --only: commands that hold the text.
exit codes: 0 all equal, 1 a difference, 77 skipped: nothing to run the commands with
"""
import argparse
import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
INDENT = "    "
PROMPT = INDENT + "$ build/onerank "
MORE = "..."
SECONDS = 600
SKIPPED = 77
HOST_TIME = re.compile(r" +[\d.]+ (us|ms|s)$")  # what a program under `exec` took: of this machine


class Example:
    """A command, and the lines of README that follow it: `first` is the number of the first one."""

    def __init__(self, lines, at):
        self.command = lines[at][len(INDENT) + 2:]
        at += 1
        while self.command.endswith("\\"):
            self.command = self.command[:-1] + lines[at].strip()
            at += 1
        self.first = at
        self.shown = []
        for line in lines[at:]:
            if line.strip() and (not line.startswith(INDENT) or line.startswith(INDENT + "$ ")):
                break
            self.shown.append(line[len(INDENT):].rstrip())

    def pieces(self):
        """Runs of lines without MORE between them, each with the number of its first line."""
        numbered = enumerate(self.shown, self.first)
        for is_more, group in itertools.groupby(numbered, lambda entry: entry[1].lstrip().startswith(MORE)):
            piece = list(group)
            while piece and not piece[-1][1]:
                piece.pop()
            while piece and not piece[0][1]:
                piece.pop(0)
            if not is_more and piece:
                yield piece[0][0], [line for _, line in piece]

    def comparable(self, line):
        """Without what is another number in every run: the last column of a program's phases."""
        return HOST_TIME.sub("", line) if self.command.startswith("build/onerank exec ") else line


def without_numbers(line):
    return re.sub(r"\s+", " ", re.sub(r"-?[\d.,]*\d", "N", line.removesuffix(MORE))).strip()


def looks_like(shown, printed):
    cut = without_numbers(printed)
    return cut.startswith(without_numbers(shown)) if shown.endswith(MORE) else cut == without_numbers(shown)


def equal(shown, printed):
    return printed.startswith(shown.removesuffix(MORE)) if shown.endswith(MORE) else shown == printed


def place_of(piece, printed, start):
    """Where the lines are printed, whatever their numbers, or None."""
    for at in range(start, len(printed) - len(piece) + 1):
        if all(map(looks_like, piece, printed[at:])):
            return at
    return None


def replacement(shown, printed):
    """Of the line that is shown: what is printed, cut where that was."""
    return printed[:len(shown) - len(MORE)] + MORE if shown.endswith(MORE) else printed


def compare(example, printed, lines):
    """Differences as text; `lines` of README get what is printed."""
    differences, start = [], 0
    comparable = [example.comparable(line) for line in printed]
    for number, piece in example.pieces():
        piece = [example.comparable(line) for line in piece]
        at = place_of(piece, comparable, start)
        if at is None:
            differences.append(f"README.md:{number + 1}: not printed so: {piece[0]}")
            continue
        start = at + len(piece)
        for i, (shown, line) in enumerate(zip(piece, comparable[at:])):
            if not equal(shown, line):
                differences.append(f"README.md:{number + i + 1}:\n  - {shown}\n  + {line}")
                lines[number + i] = INDENT + replacement(shown, printed[at + i]) if line else ""
    return differences


def run(example, folder):
    environment = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
    result = subprocess.run(example.command, shell=True, cwd=folder, env=environment, capture_output=True, text=True,
                            timeout=SECONDS, check=False)
    if result.returncode not in (0, 1):
        return [f"{example.command}: exit code {result.returncode}\n{result.stderr}"], []
    return [], [line.rstrip() for line in result.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("onerank", type=pathlib.Path)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    if not (ROOT / ".venv/bin/python").exists():
        print("no .venv, whose torch the shown commands use")
        return SKIPPED
    lines = README.read_text().split("\n")
    examples = [Example(lines, at) for at, line in enumerate(lines) if line.startswith(PROMPT)]
    chosen = [example for example in examples if options.only in example.command]
    differences = []
    with tempfile.TemporaryDirectory(prefix="onerank-readme-") as name:
        folder = pathlib.Path(name)
        for link, target in ("build", options.onerank.resolve().parent), ("scripts", ROOT / "scripts"), (".venv", ROOT / ".venv"):
            (folder / link).symlink_to(target)
        for example in chosen:
            failed, printed = run(example, folder)
            differences += failed or compare(example, printed, lines)
    print("\n".join(differences))
    print(f"{len(chosen)} commands, {len(differences)} differences")
    if options.update:
        README.write_text("\n".join(lines))
    return 1 if differences or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
