#!/usr/bin/env python3
"""The help; completions and the manual page, given to the programs that read them.

    completion_test.py ONERANK [TEST...]
"""
import functools
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ONERANK = sys.argv[1]


@functools.cache
def told(*arguments):
    return subprocess.run([ONERANK, *arguments], check=True, capture_output=True, text=True).stdout


def flags_of(subcommand):
    """All names of all flags, read from the help: "  -o, --output FILE  text; also --other"."""
    text = re.sub(r"\n {20,}", " ", told(subcommand, "--help-all"))
    lines = re.findall(r"^  (-.*)", text, re.MULTILINE)
    begins = [re.split(r"  +|(?<=[^,]) ", line)[0] for line in lines]
    aliases = [line.split("; also ")[1] for line in lines if "; also --" in line]
    return set(re.findall(r"--[\w-]+", " ".join(begins + aliases)))


def flag_lines(subcommand):
    return re.findall(r"^  -", told(subcommand, "--help-all"), re.MULTILINE)


class Help(unittest.TestCase):
    def subcommands(self):
        return re.findall(r"^  (\w+)  +", told("--help").split("Subcommands:")[1], re.MULTILINE)

    def test_IsShortAndNamesWhatHasTheRest(self):
        for subcommand in self.subcommands():
            text = told(subcommand, "--help")
            self.assertLess(text.count("\n"), 70, subcommand)
            self.assertIn("Examples:\n  onerank " if subcommand != "run" else "Examples:\n", text)
        self.assertIn(f"lists all {len(flag_lines('estimate'))} options", told("estimate", "--help"))
        self.assertNotIn("--tensor-model-parallel-size", told("estimate", "--help"))

    def test_LinesKeepToTheirColumnsAndNothingLeaksFromTheParser(self):
        for subcommand in self.subcommands():
            text = told(subcommand, "--help-all").split("Examples:")[0]
            self.assertNotIn("Excludes:", text)
            self.assertLessEqual(max(map(len, text.splitlines())), 80, subcommand)

    def test_HeadingsHaveOneOrderInAllSubcommands(self):
        orders = [re.findall(r"^([A-Z][^\n:(]*).*:$", told(one, "--help-all").split("Examples:")[0], re.MULTILINE)
                  for one in self.subcommands()]
        longest = max(orders, key=len)
        for order in orders:
            known = [heading for heading in longest if heading in order]
            self.assertEqual([heading for heading in order if heading in longest], known)

    def test_ExamplesUseFlagsThatAreThere(self):
        for subcommand in self.subcommands():
            for line in told(subcommand, "--help").split("Examples:\n")[1].splitlines():
                example = re.match(r"  (?:\w+=\w+ )*onerank (\w+)(.*)", line)
                if not example:
                    continue
                own = example[2].split(" -- ")[0].split(" | ")[0].split(" && ")[0]
                for flag in re.findall(r"--[a-z-]+", own):
                    self.assertIn(flag, flags_of(example[1]), line)


class Completion(unittest.TestCase):
    def completed(self, *words):
        script = told("completion", "bash") + 'COMP_CWORD=$(($# - 1)); COMP_WORDS=("$@"); _onerank; echo "${COMPREPLY[@]}"'
        with tempfile.NamedTemporaryFile("w", suffix=".bash") as file:  # longer than an argument may be
            file.write(script)
            file.flush()
            result = subprocess.run(["bash", "-eu", file.name, "onerank", *words], capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout.split()

    def test_BashKnowsSubcommandsAndTheirFlags(self):
        self.assertEqual(self.completed("est"), ["estimate"])
        self.assertIn("exec", self.completed("e"))
        self.assertEqual(self.completed("estimate", "--timel"), ["--timeline"])
        self.assertEqual(self.completed("list", "--timel"), [])
        self.assertEqual(set(self.completed("check", "--")), flags_of("check"))

    def test_BashKnowsTheWordsOfAFlag(self):
        self.assertEqual(self.completed("estimate", "--dtype", ""), ["bf16", "fp16", "fp32"])
        self.assertEqual(self.completed("estimate", "--framework", "deep"), ["deepspeed"])
        self.assertEqual(self.completed("check", "--framework", "=", "deep"), ["deepspeed"])
        self.assertEqual(self.completed("check", "--dtype", "="), ["bf16", "fp16", "fp32"])
        self.assertIn("gb200", self.completed("exec", "--gpu", "gb"))
        self.assertIn("llama3-70b", self.completed("sweep", "plan.json", "--model", "llama3-7"))
        self.assertEqual(self.completed("estimate", "--nodes", ""), [])
        self.assertEqual(self.completed("estimate", ""), [])

    def test_BashKnowsTheWordsOfAnArgument(self):
        lists = "gpus models links frameworks options plans torch".split()
        self.assertEqual(self.completed("list", ""), lists)
        self.assertEqual(self.completed("list", "--format", ""), ["table", "md", "csv", "json"])
        self.assertEqual(self.completed("list", "torch", "--check", ""), [])
        self.assertEqual(self.completed("schema", "pl"), ["plan"])
        self.assertEqual(self.completed("completion", ""), ["bash", "zsh", "fish"])
        self.assertIn("all_reduce", self.completed("comm", "all_"))

    def test_WordsAreTaken(self):
        for words, named in ((["list"], "list"), (["schema"], "schema"), (["completion"], "completion")):
            for word in self.completed(*words, ""):
                told(named, word)
        for word in self.completed("memory", "snapshot", "--by", ""):
            refused = subprocess.run([ONERANK, "memory", "/dev/null", "--by", word], capture_output=True, text=True)
            self.assertNotIn("cannot be grouped", refused.stderr)

    def test_OtherShellsHaveTheWordsToo(self):
        self.assertTrue("'--dtype=[type of parameters" in told("completion", "zsh"))
        self.assertTrue(":NAME:(bf16 fp16 fp32)'" in told("completion", "zsh"))
        self.assertTrue("'1:what:(bash zsh fish)'" in told("completion", "zsh"))
        self.assertTrue(" -l dtype -x -a 'bf16 fp16 fp32' -d " in told("completion", "fish"))
        self.assertTrue("'__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'" in told("completion", "fish"))

    def check_script(self, shell):
        script = told("completion", shell)
        for flag in flags_of("estimate"):
            self.assertRegex(script, rf"{flag}\b" if shell == "zsh" else rf"-l {flag[2:]}\b")
        if not shutil.which(shell):
            self.skipTest(f"no {shell} here")
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(script)
            file.flush()
            result = subprocess.run([shell, "-n", file.name], capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_ZshReadsIts(self):
        self.check_script("zsh")

    def test_FishReadsIts(self):
        self.check_script("fish")

    def test_OtherShellsAreRefused(self):
        result = subprocess.run([ONERANK, "completion", "zhs"], capture_output=True, text=True)
        self.assertEqual(result.returncode, 2)
        self.assertIn("bash, zsh, fish", result.stderr)

    def test_ManualPageHoldsEverySubcommandAndFlag(self):
        page = told("man").replace("\\-", "-")
        for subcommand in re.findall(r"^  (\w+)  +", told("--help").split("Subcommands:")[1], re.MULTILINE):
            self.assertIn(f".SS onerank {subcommand}\n", page)
            for flag in flags_of(subcommand):
                self.assertIn(f"\\fB{flag}\\fR", page)

    def test_ManualPageSaysWhatAliasesDoOnce(self):
        check = re.search(r"^\.SS onerank check\n(.*?)^\.S[SH]", told("man").replace("\\-", "-"), re.MULTILINE | re.DOTALL)[1]
        self.assertIn("\\fB--tp\\fR, \\fB--tensor-model-parallel-size\\fR, ", check)
        self.assertEqual(check.count("tensor parallel size (default: 1)\n"), 1)

    def test_ManualPageIsFormattedWithoutAWarning(self):
        if not shutil.which("groff"):
            self.skipTest("no groff here")
        result = subprocess.run(["groff", "-man", "-ww", "-z", "-K", "utf8"], input=told("man"), capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
