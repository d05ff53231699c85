"""Blocks that hold a table of scripts/accuracy."""
import functools
import subprocess

from .marks import Difference, DocumentError

SUBJECTS = ("memory", "time", "comm")
TABLES = ("sources", "sweeps")  # in the order in which a report has them
TOTALS = "totals"
ALL = "| all "


class Accuracy:
    def __init__(self, root, build):
        self._command = [root / "scripts/accuracy", "--build", build]

    def update(self, block):
        *subjects, table = block.argument.split()
        is_table = len(subjects) == 1 and table in TABLES
        if not set(subjects) <= set(SUBJECTS) or not (is_table or subjects and table == TOTALS):
            raise DocumentError(f"{block.where(-1)}: not 'SUBJECT {'|'.join(TABLES)}' or 'SUBJECT... {TOTALS}' "
                                f"(subjects: {', '.join(SUBJECTS)}): {block.argument}")
        lines = self._table(subjects[0], table, block) if is_table else self._totals(subjects)
        if lines == block.lines:
            return []
        block.new_lines = lines
        return [Difference(block.where(), f"not as scripts/accuracy prints it: {block.argument}")]

    def _table(self, subject, table, block):
        tables = self._tables(subject)[:-1]  # the last one has a line for each row
        if TABLES.index(table) >= len(tables):
            raise DocumentError(f"{block.where(-1)}: scripts/accuracy {subject} has no {table}")
        return tables[TABLES.index(table)]

    def _totals(self, subjects):
        """The rows of all sources, without the column that says so."""
        tables = [self._tables(subject)[0] for subject in subjects]
        rows = [row for table in tables for row in table if row.startswith(ALL)]
        cells = [[cell.strip() for cell in row.strip("|").split("|")[1:]] for row in [tables[0][0], *rows]]
        head, *body = [f"| {' | '.join(row)} |" for row in cells]
        return [head, "|---" + "|---:" * (len(cells[0]) - 1) + "|", *body]

    @functools.lru_cache
    def _tables(self, subject):
        program, *options = self._command
        done = subprocess.run([program, subject, *options], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise DocumentError(f"scripts/accuracy {subject}: exit code {done.returncode}\n{done.stderr}")
        parts = done.stdout.split("\n\n")
        return [part.split("\n") for part in parts if part.startswith("|")]
