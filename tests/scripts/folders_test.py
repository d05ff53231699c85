#!/usr/bin/python3
"""Includes go along the arrows that folders.txt draws, and these make no circle. The first document stays short."""
import graphlib
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PARTS = ("estimator", "comm_stub", "models", "sim")
INCLUDE = re.compile(r'^#include "((?:%s)/[^"]+)"' % "|".join(PARTS), re.MULTILINE)


def drawn_arrows():
    """{folder: the folders that it may use}, as drawn."""
    lines = (ROOT / "tests/scripts/folders.txt").read_text().splitlines()
    rows = [line.split(":") for line in lines if line and not line.startswith("#")]
    return {folder: set(used.split()) for folder, used in rows}


def found_arrows():
    """{folder: {folder that it uses: a file that does}}, as included."""
    found = {}
    for part in PARTS:
        for path in sorted((ROOT / part).rglob("*.*")):
            if path.suffix not in (".h", ".cpp"):
                continue
            folder = str(path.parent.relative_to(ROOT))
            uses = found.setdefault(folder, {})
            for header in INCLUDE.findall(path.read_text()):
                used = str(pathlib.PurePath(header).parent)
                if used != folder:
                    uses.setdefault(used, path.name)
    return found


class Folders(unittest.TestCase):
    def test_include_nothing_but_what_is_drawn(self):
        drawn = drawn_arrows()
        found = found_arrows()
        self.assertGreater(len(found), 30)
        for folder, uses in found.items():
            self.assertIn(folder, drawn, "draw it in folders.txt")
            undrawn = {used: name for used, name in uses.items() if used not in drawn[folder]}
            self.assertEqual(undrawn, {}, f"{folder} must not use these")

    def test_use_all_that_is_drawn(self):
        found = found_arrows()
        for folder, used in drawn_arrows().items():
            self.assertEqual(used - set(found.get(folder, {})), set(), f"{folder} does not use these")

    def test_make_no_circle(self):
        list(graphlib.TopologicalSorter(drawn_arrows()).static_order())

    def test_of_the_shard_stand_in_its_readme_with_all_files(self):
        text = (ROOT / "models/README.md").read_text()
        for path in sorted((ROOT / "models").rglob("*.*")):
            if path.suffix in (".h", ".cpp"):
                self.assertTrue(f"`{path.name}`" in text or f"`{path.stem}.*`" in text, f"{path} is not named there")


class Readme(unittest.TestCase):
    def test_of_the_repository_can_be_read_at_once(self):
        lines = (ROOT / "README.md").read_text().splitlines()
        self.assertLessEqual(len(lines), 150, "what is about one folder belongs into its README")


if __name__ == "__main__":
    unittest.main()
