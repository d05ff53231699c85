#!/usr/bin/env python3
"""Writes the generated half of the virtual GPU's libraries, for one installed torch.

From the undefined symbols and the needed libraries of <torch>/lib/*.so* it finds out which NVIDIA
libraries torch wants (their SONAMEs), which functions of them, and under which symbol versions.
For each library it writes into the output folder

    <library>.cpp   a stub for every function, refused or harmless as libraries.ini says
    <library>.map   the linker's version script

and `stubs.cmake`, which tells CMake their names. Files that would not change are not touched.
Runs when CMake configures; reads the wheel with nm and readelf and needs only Python's own library.
"""

import argparse
import configparser
import fnmatch
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

# A library of NVIDIA's that libraries.ini does not know gets this answer for everything.
UNKNOWN_LIBRARY_REFUSAL = ("801", "an error")
NVIDIA_LIBRARY = re.compile(r"(lib(?:cu|nv|nccl)\w*)\.so\.\d+")


@dataclass
class Library:
    name: str                                   # libcudart
    soname: str                                 # libcudart.so.13
    functions: set = field(default_factory=set)
    versions: set = field(default_factory=set)  # of its symbols; empty if they carry none


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def needed_libraries(torch_libraries, readelf):
    """The NVIDIA libraries that torch's libraries need, by name."""
    text = run(readelf, "--dynamic", "--wide", *torch_libraries)
    sonames = set(re.findall(r"\(NEEDED\).*\[(.+)\]", text))
    matches = (NVIDIA_LIBRARY.fullmatch(soname) for soname in sonames)
    return {m.group(1): Library(m.group(1), m.group(0)) for m in matches if m}


def undefined_symbols(torch_libraries, nm):
    """Pairs (name, version) of what torch's libraries leave undefined; version may be None."""
    for line in run(nm, "--dynamic", "--undefined-only", *torch_libraries).splitlines():
        words = line.split()
        if len(words) == 2 and not words[1].startswith("_Z"):
            name, _, version = words[1].partition("@")
            yield name, version.lstrip("@") or None


def declared_functions(header):
    """The functions that cuda.h or cuda_runtime_api.h declares, older and newer versions alike."""
    text = header.read_text(errors="replace")
    declared = re.findall(r"\b(?:CUDAAPI|CUDARTAPI)\s+(\w+)\s*\(", text)
    renamed = re.findall(r"^\s*#\s*define\s+cu\w+\s+(?:__CUDA_API_\w+\()?(cu\w+_v\d+)", text, re.M)
    return set(declared) | set(renamed)


def check_headers(libraries, cuda_include):
    """Structures differ between CUDA 12 and 13: the headers must be those of torch's runtime."""
    wanted = libraries["libcudart"].soname.rpartition(".")[2]
    version = re.search(r"#define CUDA_VERSION (\d+)", (cuda_include / "cuda.h").read_text())
    found = str(int(version.group(1)) // 1000)
    if found != wanted:
        sys.exit(f"torch wants CUDA {wanted}, but {cuda_include} has the headers of CUDA {found}")


def matches_any(name, patterns):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def assign_functions(libraries, symbols, config):
    """Gives every symbol to the library whose version it carries, or whose patterns match it."""
    by_soname = {library.soname: library for library in libraries.values()}
    # The pattern of the CUDA driver (cu[A-Z]*) takes cuFile* too: ask the specific ones first.
    by_pattern = sorted(
        ((pattern, libraries[name])
         for name in config.sections() if name in libraries
         for pattern in config[name]["functions"].split()),
        key=lambda pair: -len(pair[0].split("[")[0]))
    for symbol, version in symbols:
        library = by_soname.get(version)
        if library is None:
            library = next((l for p, l in by_pattern if fnmatch.fnmatchcase(symbol, p)), None)
        if library is None:
            continue
        library.functions.add(symbol)
        if version:
            library.versions.add(version)


class Answers:
    """What libraries.ini says about one library."""

    def __init__(self, section):
        self.code, self.code_name = UNKNOWN_LIBRARY_REFUSAL
        if section:
            self.code, self.code_name = section["refusal"].split()
        words = (section or {}).get("refusal_of", "").split()
        self.refusal_of = dict(zip(words[0::2], words[1::2]))
        self.handles = (section or {}).get("handles", "").split()
        self.harmless = (section or {}).get("harmless", "").split()
        lines = (section or {}).get("help", "").strip().splitlines()
        self.help = [(patterns.split(), way_out.strip())
                     for patterns, _, way_out in (line.partition(":") for line in lines)]

    def help_of(self, function):
        return next((way_out for patterns, way_out in self.help if matches_any(function, patterns)), "")

    def refused(self, function, code, name):
        way_out = self.help_of(function).replace('"', '\\"')
        return f'VIRTUAL_GPU_REFUSED({function}, {code}, "{name}", "{way_out}")'

    def stub(self, function):
        if matches_any(function, self.handles):
            return f"VIRTUAL_GPU_CREATES_HANDLE({function})"
        if matches_any(function, self.harmless):
            return f"VIRTUAL_GPU_HARMLESS({function})"
        if function in self.refusal_of:
            code = self.refusal_of[function]
            return self.refused(function, code, code)
        return self.refused(function, self.code, f"{self.code_name} ({self.code})")


def source_text(library, answers):
    lines = [f"// Written by generate_stubs.py for {library.soname}.",
             '#include "sim/virtual_gpu/generated_stub.h"', ""]
    lines += [answers.stub(function) for function in sorted(library.functions)]
    return "\n".join(lines) + "\n"


def version_script(library, patterns):
    """Exports the library's own functions under torch's symbol version, and hides the rest."""
    exports = [f"    {pattern};" for pattern in patterns or sorted(library.functions)]
    if library.name == "libcudart":
        exports.append('    onerank_virtual_gpu_*;')
        exports.append('    extern "C++" { virtual_gpu::*; };')  # for the other stubs
    if not exports:
        exports = ["    nothing;"]
    version = "".join(sorted(library.versions)[:1])
    return f"{version} {{\n  global:\n" + "\n".join(exports) + "\n  local:\n    *;\n};\n"


def write_if_changed(path, text):
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def unknown_functions(libraries, symbols, config):
    """Lines about what torch's libraries call and no stub is made for, or only one that refuses."""
    for library in libraries.values():
        if library.name not in config:
            yield f"{library.soname}: {', '.join(sorted(library.functions)) or 'no function'}"
    sonames = {library.soname for library in libraries.values()}
    for symbol, version in sorted(symbols, key=str):
        if version and version not in sonames and NVIDIA_LIBRARY.fullmatch(version):
            yield f"{symbol} of {version}, which is not needed by torch itself"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--torch-lib", type=Path, required=True, help="<torch>/lib")
    parser.add_argument("--cuda-include", type=Path, help="folder of cuda.h")
    parser.add_argument("--libraries", type=Path, required=True, help="libraries.ini")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--unknown", action="store_true",
                        help="print what libraries.ini does not know, a line each, and write nothing")
    parser.add_argument("--nm", default="nm")
    parser.add_argument("--readelf", default="readelf")
    arguments = parser.parse_args()

    config = configparser.ConfigParser(inline_comment_prefixes=("#",))
    config.read_string(arguments.libraries.read_text())
    torch_libraries = sorted(str(path) for path in arguments.torch_lib.glob("*.so*"))

    libraries = needed_libraries(torch_libraries, arguments.readelf)
    symbols = list(undefined_symbols(torch_libraries, arguments.nm))
    assign_functions(libraries, symbols, config)
    if arguments.unknown:
        for line in unknown_functions(libraries, symbols, config):
            print(line)
        return
    if not arguments.cuda_include or not arguments.output:
        parser.error("give --cuda-include and --output, or --unknown")
    check_headers(libraries, arguments.cuda_include)
    for library in libraries.values():
        section = config[library.name] if library.name in config else None
        if section is None:
            print(f"{library.soname} is not in {arguments.libraries.name}: every function of it "
                  "is refused", file=sys.stderr)
        elif "header" in section:
            library.functions |= {
                function for function in declared_functions(arguments.cuda_include / section["header"])
                if matches_any(function, section["functions"].split())}
        if len(library.versions) > 1:
            sys.exit(f"{library.soname}: symbols of several versions: {sorted(library.versions)}")
        patterns = section["functions"].split() if section else []
        write_if_changed(arguments.output / f"{library.name}.cpp",
                         source_text(library, Answers(section)))
        write_if_changed(arguments.output / f"{library.name}.map",
                         version_script(library, patterns))

    names = sorted(libraries, key=lambda name: (name != "libcudart", name))
    lines = [f"set(VIRTUAL_GPU_LIBRARIES {' '.join(names)})"]
    lines += [f"set(VIRTUAL_GPU_{name}_SONAME {libraries[name].soname})" for name in names]
    write_if_changed(arguments.output / "stubs.cmake", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
