"""Documents, and the blocks in them that stand between marks."""
import dataclasses
import re

OPENING = re.compile(r"<!-- (onerank|accuracy|files): ")
CLOSING = "-->"
END = "<!-- end -->"
FENCE = "```"


class DocumentError(Exception):
    """A mark that cannot be read, or what it asks for cannot be had."""


@dataclasses.dataclass(frozen=True)
class Difference:
    """Between what a document shows and what is printed."""
    where: str  # README.md:12
    text: str
    is_lost: bool = False  # nothing printed looks like it, so that it cannot be written anew

    def __str__(self):
        return f"{self.where}: {self.text}"


@dataclasses.dataclass
class Block:
    """The lines between a mark and its end."""
    name: str  # of the document, from the root
    kind: str
    argument: str  # what the mark says after its kind; may go over several lines
    first: int  # number of the first line, from 1
    lines: list
    new_lines: list = None  # where they differ

    def where(self, line=0):
        return f"{self.name}:{self.first + line}"


class Document:
    def __init__(self, path, root):
        self.path = path
        self.name = str(path.relative_to(root))
        self.lines = path.read_text().split("\n")
        self.blocks = list(self._read())

    def _read(self):
        at, is_code = 0, False
        while at < len(self.lines):
            is_code ^= self.lines[at].startswith(FENCE)
            match = None if is_code else OPENING.match(self.lines[at])
            if match:
                block = self._block(match[1], at)
                at = block.first - 1 + len(block.lines)
                yield block
            at += 1

    def _block(self, kind, at):
        closing = self._next(at, lambda line: line.endswith(CLOSING), "no '-->' at the end of a line")
        end = self._next(closing + 1, lambda line: line == END or OPENING.match(line), f"no '{END}'", at)
        if self.lines[end] != END:
            raise DocumentError(f"{self.name}:{at + 1}: no '{END}' before the next mark")
        text = "\n".join(self.lines[at:closing + 1])
        argument = text[len(f"<!-- {kind}: "):-len(CLOSING)].strip()
        return Block(self.name, kind, argument, closing + 2, self.lines[closing + 1:end])

    def _next(self, start, is_it, complaint, opening=None):
        for at in range(start, len(self.lines)):
            if is_it(self.lines[at]):
                return at
        raise DocumentError(f"{self.name}:{(start if opening is None else opening) + 1}: {complaint}")

    def changed(self):
        return any(block.new_lines is not None for block in self.blocks)

    def text(self):
        lines = list(self.lines)
        for block in reversed(self.blocks):
            if block.new_lines is not None:
                start = block.first - 1
                lines[start:start + len(block.lines)] = block.new_lines
        return "\n".join(lines)
