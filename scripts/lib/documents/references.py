"""Names in documents: files that must exist, flags that must be known."""
import re
import subprocess

from .marks import FENCE, Difference

LINK = re.compile(r"\]\((?!\w+:)([^)#]+)")
CODE = re.compile(r"`([^`]+)`")
PATH = re.compile(r"(?:estimator|comm_stub|models|sim|scripts|tests)/[\w./-]*")
PATTERN = re.compile(r"\w+\.\*")  # `stage.*`: somewhere in the document's folder
FLAG = re.compile(r"--[a-z][a-z0-9-]*")
SUBCOMMAND = re.compile(r"^  ([a-z]+)  ", re.MULTILINE)


def known_flags(root, onerank):
    """Those that a program's help or source names."""
    text = "".join(path.read_text(errors="ignore") for path in (root / "scripts").glob("*") if path.is_file())
    text += "".join(path.read_text() for name in ("*.sh", "*/command.py") for path in (root / "scripts/lib").glob(name))
    commands = _help(onerank)
    for command in SUBCOMMAND.findall(commands[commands.index("Subcommands:"):]):
        text += _help(onerank, command, all_options=True)
    return set(FLAG.findall(text))


def _help(*command, all_options=False):
    return subprocess.run([*command, "--help-all" if all_options else "--help"], capture_output=True, text=True, check=True).stdout


def wrong_references(documents, root, flags):
    return [Difference(f"{document.name}:{number}", complaint)
            for document in documents
            for number, line in _prose(document.lines)
            for complaint in _complaints(line, root, document.path.parent, flags)]


def _prose(lines):
    is_code = False
    for number, line in enumerate(lines, 1):
        if line.startswith(FENCE):
            is_code = not is_code
        elif not is_code and not line.startswith("    "):
            yield number, line


def _complaints(line, root, folder, flags):
    for link in LINK.findall(line):
        if not (folder / link).exists():
            yield f"no file {link}"
    for code in CODE.findall(line):
        if PATH.fullmatch(code) and not (root / code).exists():
            yield f"no file {code}"
        if PATTERN.fullmatch(code) and not any(folder.rglob(code)):
            yield f"no file {code}"
        if code.startswith("--"):
            yield from (f"no flag {flag}" for flag in FLAG.findall(code) if flag not in flags)
