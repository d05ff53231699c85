#!/usr/bin/env python3
"""Counts the test cases of CTest's JUnit reports.

usage: count_tests.py REPORT.xml...

A program of googletest that CTest runs as one case counts as the cases that it says it ran. Shows the output of each failed case; the last line is `N passed, N failed`, followed by
`, N skipped` if there were any. Exits with 0 if every case passed or was skipped and one did pass.
"""

import collections
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree


def outcome(case: ElementTree.Element) -> str:
    """Returns passed, failed or skipped for one <testcase>."""
    status = case.get("status")
    if status == "run":
        return "passed"
    if status == "disabled":
        return "skipped"
    # What a test itself skips is "notrun" for CTest, and so is what could not be started: a
    # missing executable, a fixture that failed.
    skipped = case.find("skipped")
    if status == "notrun" and skipped is not None and skipped.get("message", "").startswith("SKIP_"):
        return "skipped"
    return "failed"


# The end of what googletest prints: "[  PASSED  ] 12 tests.", "[  FAILED  ] 1 test, listed below:".
GTEST_SUM = re.compile(r"^\[  (PASSED|FAILED|SKIPPED) +\] (\d+) tests?[.,]", re.MULTILINE)


def outcomes(case: ElementTree.Element) -> collections.Counter:
    """Returns how many cases one <testcase> is, by their outcome."""
    result = outcome(case)
    counts = collections.Counter()
    for word, number in GTEST_SUM.findall(case.findtext("system-out") or ""):
        counts[word.lower()] += int(number)
    if result == "skipped" or not counts:
        return collections.Counter({result: 1})
    if result == "failed" and not counts["failed"]:
        counts["failed"] = 1  # after its last case
    return counts


def main(reports: list[str]) -> int:
    counts = collections.Counter(passed=0, failed=0, skipped=0)
    for report in map(pathlib.Path, reports):
        for case in ElementTree.parse(report).iter("testcase"):
            counts += outcomes(case)
            if outcome(case) == "failed":
                print(f"\n--- {report.stem}: {case.get('name')} failed")
                print((case.findtext("system-out") or "(no output)").rstrip())
    if not any(counts.values()):
        print("error: no tests ran", file=sys.stderr)
    elif counts["failed"]:
        print()
    sys.stderr.flush()
    skipped = f", {counts['skipped']} skipped" if counts["skipped"] else ""
    print(f"{counts['passed']} passed, {counts['failed']} failed{skipped}")
    return 0 if counts["passed"] and not counts["failed"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
