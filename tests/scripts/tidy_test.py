#!/usr/bin/python3
"""Tests of scripts/tidy: what is looked at (by a fake clang-tidy), and what is not looked at again."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/tidy"
UNITY = "build/sim/CMakeFiles/sim.dir/Unity/unity_0_cxx.cxx"
# Finds what holds the word BAD, and writes down what it is asked.
CLANG_TIDY = """#!/bin/sh
case "$*" in
  --version) echo "LLVM version {release}.0.6" ;;
  *probe.cpp*) exit {reads_headers} ;;
  *)
    for file; do :; done
    echo "$*" >> {calls}
    ! grep -n BAD "$file" sim/*.h ;;
esac
"""
NINJA = """#!/bin/sh
[ -e {built} ] || exit 1
echo "object: #deps 4, deps mtime 1 (VALID)"
printf '    %s\\n' sim/CMakeFiles/sim.dir/Unity/unity_0_cxx.cxx ../sim/a.cpp ../sim/a.h {other}
"""


class Tidy(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        self.clone = self.make_clone("clone")

    def make_clone(self, name):
        clone = self.folder / name
        self.write(clone, "sim/a.cpp", "")
        self.write(clone, "sim/a.h", "")
        self.write(clone, ".clang-tidy", "Checks: performance-*")
        self.write(clone, "sim/.clang-tidy", "InheritParentConfig: true")
        self.write(clone, "build/compile_commands.json", "[]")
        self.add_library(clone, UNITY, "a.cpp", f"-I{clone} -Werror -Winvalid-pch -include {clone}/build/cmake_pch.hxx")
        (clone / "scripts").mkdir()
        shutil.copy(SCRIPT, clone / "scripts/tidy")
        for arguments in ["init", "--quiet"], ["add", "sim", ".clang-tidy"]:
            subprocess.run(["git", *arguments], cwd=clone, check=True)
        return clone

    def add_library(self, clone, unity, source, flags):
        self.write(clone, unity, f'#include "{clone}/sim/{source}"')
        commands = clone / "build/compile_commands.json"
        commands.write_text(json.dumps([*json.loads(commands.read_text()), {
            "directory": f"{clone}/build", "file": f"{clone}/{unity}", "command": f"c++ {flags} -o a.o -c a.cxx"}]))

    def write(self, clone, path, text):
        path = clone / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_tidy(self, clone=None, release=14, reads_headers=0):
        """The exit code, what was printed, and how often clang-tidy looked."""
        clone = clone or self.clone
        calls, other = clone / "calls", self.folder / "other.h"
        calls.unlink(missing_ok=True)
        other.touch()
        built = clone / "build/compile_commands.json"
        for name, text in {
                "clang-tidy-14": CLANG_TIDY.format(release=release, reads_headers=reads_headers, calls=calls),
                "clang-tidy": CLANG_TIDY.format(release=release, reads_headers=reads_headers, calls=calls),
                "ninja": NINJA.format(built=built, other=other)}.items():
            self.write(self.folder, f"bin/{name}", text)
            (self.folder / "bin" / name).chmod(0o755)
        environment = os.environ | {"PATH": f"{self.folder}/bin:{os.environ['PATH']}",
                                    "XDG_CACHE_HOME": str(self.folder / "cache")}
        result = subprocess.run([sys.executable, clone / "scripts/tidy", "--quick"], env=environment, text=True,
                                capture_output=True, check=False)
        self.calls = calls.read_text() if calls.exists() else ""
        return result.returncode, result.stdout + result.stderr, len(self.calls.splitlines())

    def test_WhatIsFoundIsToldEachTime(self):
        self.write(self.clone, "sim/a.h", "BAD")
        for _ in range(2):
            code, printed, looked = self.run_tidy()
            self.assertEqual((code, looked), (1, 1))
            self.assertIn("sim/a.h:1:BAD", printed)

    def test_WhatIsWithoutFaultIsNotLookedAtAgain(self):
        self.assertEqual(self.run_tidy(), (0, "clang-tidy: 1 files, 1 of them looked at now, something found in 0\n", 1))
        self.assertEqual(self.run_tidy(), (0, "clang-tidy: 1 files, 0 of them looked at now, something found in 0\n", 0))

    def test_AnotherCloneHasTheSameStamps(self):
        self.run_tidy()
        self.assertEqual(self.run_tidy(self.make_clone("other"))[2], 0)

    def test_WhatChangedIsLookedAtAgain(self):
        for path in "sim/a.h", "sim/a.cpp", ".clang-tidy", "sim/.clang-tidy":
            self.run_tidy()
            self.assertEqual(self.run_tidy()[2], 0)
            self.write(self.clone, path, "# changed")
            self.assertEqual(self.run_tidy()[2], 1, path)
        (self.folder / "other.h").write_text("longer")
        self.assertEqual(self.run_tidy()[2], 1)

    def test_UnityFilesHaveTheRulesOfTheirFolder(self):
        self.run_tidy()
        self.assertEqual((self.clone / "build/sim/.clang-tidy").read_text(), "InheritParentConfig: true")

    def test_WhatFindsTheSameHeadersIsLookedAtTogether(self):
        clone = self.clone
        self.add_library(clone, UNITY.replace("sim.dir", "twin.dir"), "b.cpp", f"-DTWIN=1 -O1 -I{clone}/sim/..")
        self.add_library(clone, UNITY.replace("sim.dir", "other.dir"), "c.cpp", f"-I{clone} -isystem /other")
        self.add_library(clone, UNITY.replace("sim.dir", "shared.dir"), "d.cpp", f"-Dshared_EXPORTS -I{clone}")
        self.assertEqual(self.run_tidy()[2], 3)
        joined = clone / UNITY.replace("unity_", "whole_")
        self.assertEqual(joined.read_text(), f'#include "{clone}/sim/a.cpp"\n#include "{clone}/sim/b.cpp"')
        commands = json.loads((clone / "build/tidy/compile_commands.json").read_text())
        self.assertEqual({command["file"]: command["command"] for command in commands}[str(joined)],
                         f"c++ -I{clone} -o a.o -DTWIN=1 -c {joined}")

    def test_AFileHasSoManySourcesAtMost(self):
        for number in range(64):  # the most
            self.add_library(self.clone, UNITY.replace("sim.dir", f"{number}.dir"), f"{number}.cpp", f"-I{self.clone}")
        self.assertEqual(self.run_tidy()[2], 2)

    def test_ClangIsToldNothingOfWhatGccPrecompiled(self):
        self.run_tidy()
        commands = json.loads((self.clone / "build/tidy/compile_commands.json").read_text())
        self.assertEqual(commands[0]["command"], f"c++ -I{self.clone} -o a.o -c a.cxx")

    def test_AnotherReleaseExitsWith3(self):
        code, printed, _ = self.run_tidy(release=18)
        self.assertEqual(code, 3)
        self.assertIn("error: no clang-tidy 14\n  help: apt-get install clang-tidy-14", printed)

    def test_ReleaseThatCannotReadTheHeadersExitsWith3(self):
        code, printed, _ = self.run_tidy(reads_headers=1)
        self.assertEqual(code, 3)
        self.assertIn("cannot read this compiler's headers", printed)


if __name__ == "__main__":
    unittest.main()
