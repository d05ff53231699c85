"""Blocks that list the source files in which a pattern is found."""
import re

from .marks import Difference, DocumentError

SOURCES = (".h", ".cpp", ".py")
FORM = re.compile(r"(\S+) in (.+)")


class Files:
    def __init__(self, root):
        self._root = root

    def update(self, block):
        form = FORM.fullmatch(block.argument)
        folders = form[2].split() if form else []
        if not folders or not all((self._root / folder).is_dir() for folder in folders):
            raise DocumentError(f"{block.where(-1)}: not 'PATTERN in FOLDER...': {block.argument}")
        lines = self._lines(re.compile(form[1]), folders)
        if lines == block.lines:
            return []
        block.new_lines = lines
        return [Difference(block.where(), f"other files have {form[1]}: {_changes(block.lines, lines)}")]

    def _lines(self, pattern, folders):
        """A line for each folder that has such files."""
        by_folder = {}
        for folder in folders:
            for path in sorted((self._root / folder).rglob("*")):
                if path.suffix in SOURCES and pattern.search(path.read_text()):
                    by_folder.setdefault(path.parent.relative_to(self._root), []).append(f"`{path.name}`")
        return [f"- `{folder}`: {', '.join(names)}" for folder, names in sorted(by_folder.items())]


def _changes(old, new):
    return "; ".join(line for line in new if line not in old) or "fewer than the document names"
