"""Builds fused_attention.cpp against the headers of an installed TransformerEngine."""
import pathlib
import subprocess

SOURCE = pathlib.Path(__file__).resolve().parent / "fused_attention.cpp"

FIND_HEADERS = ("import importlib.util, pathlib;"
                "spec = importlib.util.find_spec('transformer_engine');"
                "print(pathlib.Path(spec.origin).parent / 'common' / 'include' if spec else '')")


class CannotBuild(Exception):
    """TransformerEngine, a compiler or CUDA's headers are not there."""


def build(python, cuda, library):
    """`library` is written where it is older than its source."""
    if library.exists() and library.stat().st_mtime >= SOURCE.stat().st_mtime:
        return
    found = subprocess.run([python, "-c", FIND_HEADERS], capture_output=True, text=True,
                           check=False)
    headers = found.stdout.strip()
    if not headers:
        raise CannotBuild(f"{python} has no transformer_engine")
    library.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["g++", "-O1", "-shared", "-fPIC", f"-I{headers}", f"-I{cuda}/include",
                           SOURCE, "-o", library], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CannotBuild(done.stderr.strip())
