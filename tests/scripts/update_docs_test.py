#!/usr/bin/python3
"""Tests of scripts/update-docs, on documents and an onerank (a fake) of their own."""
import pathlib
import subprocess
import tempfile
import unittest

UPDATE_DOCS = pathlib.Path(__file__).resolve().parents[2] / "scripts/update-docs"

# The fake onerank runs its arguments as a command; a single one is a script.
HELP = "Subcommands:\n  echo   prints\n"
FAKE = f"""#!/bin/sh
case "$*" in
  --help) printf '{HELP}' ;;
  *--help-all) echo '  --tp N   ranks' ;;
  run*) shift; "$@" ;;
  *) if [ $# = 1 ]; then eval "$1"; else "$@"; fi ;;
esac
"""
TABLE = """| source | rows |  mean |
|--------|-----:|------:|
| simu   |    2 | 0.5 % |
| all    |    2 | 0.5 % |"""
ACCURACY = f"""#!/bin/sh
echo '{TABLE}'
echo
echo '| row | error |
|-----|------:|'
echo
echo 'Left out: 0 rows'
"""


class Documents(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("build/onerank", FAKE)
        self.write("scripts/accuracy", ACCURACY)
        self.write(".venv/bin/python", "")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def run_on(self, text, *options, name="README.md"):
        """(exit code, output, the document afterwards)"""
        self.write(name, text)
        done = subprocess.run([UPDATE_DOCS, "--root", self.root, *options], capture_output=True, text=True,
                              check=False)
        return done.returncode, done.stdout + done.stderr, (self.root / name).read_text()

    def shown(self, command, *lines):
        return "\n".join([f"<!-- onerank: {command} -->", "```console",
                          *f"$ build/onerank {command}".split("\n"), *lines, "```", "<!-- end -->", ""])

    def test_marks_alone_get_all_of_the_output(self):
        code, _, text = self.run_on("<!-- onerank: printf 'one 1\\n\\ntwo 2\\n' -->\n<!-- end -->\n")
        self.assertEqual(code, 0)
        self.assertEqual(text, self.shown("printf 'one 1\\n\\ntwo 2\\n'", "one 1", "", "two 2"))

    def test_what_is_printed_still_passes_and_is_not_written(self):
        text = self.shown("echo takes 3 GiB", "takes 3 GiB")
        self.assertEqual(self.run_on(text, "--check")[0], 0)

    def test_check_names_the_line_whose_number_changed_and_writes_nothing(self):
        text = "above\n" + self.shown("printf 'a 1\\nb 2\\n'", "...", "b 7")
        code, output, after = self.run_on(text, "--check")
        self.assertEqual(code, 1)
        self.assertIn("README.md:6: \n  - b 7\n  + b 2", output)
        self.assertEqual(after, text)

    def test_update_writes_numbers_and_keeps_what_was_cut(self):
        old = self.shown("printf 'head\\na  10 GiB long note\\ntail\\n'", "...", "a   9 GiB lo...", "... (more)")
        new = self.shown("printf 'head\\na  10 GiB long note\\ntail\\n'", "...", "a  10 GiB lo...", "... (more)")
        code, _, text = self.run_on(old)
        self.assertEqual((code, text), (0, new))

    def test_a_block_from_which_nothing_was_cut_is_all_of_the_output(self):
        old, new = (self.shown("printf 'a\\nnew\\nc\\n'", *lines) for lines in (["a", "c"], ["a", "new", "c"]))
        code, output, _ = self.run_on(old, "--check")
        self.assertEqual(code, 1)
        self.assertIn("README.md:2: \n  + new\n", output)
        code, _, text = self.run_on(old)
        self.assertEqual((code, text), (0, new))

    def test_update_follows_a_word_that_was_renamed(self):
        old = self.shown("printf 'x\\nlayers.0.linear_fc1 20.0 MiB\\ny\\n'", "...", "layers.0.mlp.linear_fc1 18.0 MiB", "...")
        code, _, text = self.run_on(old)
        self.assertEqual(code, 0)
        self.assertIn("\nlayers.0.linear_fc1 20.0 MiB\n", text)

    def test_update_says_what_is_not_printed_any_more_and_leaves_it(self):
        old = self.shown("echo completely other words", "fits: rank 0 needs 3 GiB", "...")
        code, output, text = self.run_on(old)
        self.assertEqual((code, text), (1, old))
        self.assertIn("README.md:4: not printed so: fits: rank 0 needs 3 GiB", output)

    def test_a_command_over_several_lines_is_shown_so(self):
        command = "echo a \\\n    b"
        code, _, text = self.run_on(f"<!-- onerank: {command} -->\n<!-- end -->\n")
        self.assertEqual((code, text), (0, self.shown(command, "a b")))

    def test_the_command_shown_is_the_marks(self):
        other = self.shown("echo a", "a").replace("$ build/onerank echo a", "$ build/onerank echo b")
        self.assertEqual(self.run_on(other, "--check")[0], 1)
        self.assertEqual(self.run_on(other)[2], self.shown("echo a", "a"))

    def test_what_the_host_took_may_differ_in_phases_alone(self):
        for command, code in {"run echo": 0, "echo": 1}.items():
            text = self.shown(f"{command} 'build_model 3829.13  570.42 ms'", "build_model 3829.13   1.57 s")
            self.assertEqual(self.run_on(text, "--check")[0], code, command)

    def test_not_fitting_is_an_answer_and_bad_input_is_not(self):
        self.assertEqual(self.run_on(self.shown("'echo no; exit 1'", "no"), "--check")[0], 0)
        code, output, _ = self.run_on(self.shown("'echo no; exit 2'", "no"), "--check")
        self.assertEqual(code, 1)
        self.assertIn("exit code 2", output)

    def test_commands_share_a_folder_over_documents(self):
        self.write("a/README.md", self.shown("'echo 5 > made; cat made'", "5"))
        self.assertEqual(self.run_on(self.shown("cat made", "5"), "--check", name="b/README.md")[0], 0)

    def test_marks_without_an_end_exit_with_2(self):
        for text in ("<!-- onerank: echo a -->\n", "<!-- onerank: echo a\n",
                     "<!-- onerank: echo a -->\n<!-- onerank: echo b -->\n<!-- end -->\n"):
            code, output, _ = self.run_on(text)
            self.assertEqual(code, 2, text)
            self.assertIn("README.md:1: no ", output)

    def test_no_marks_at_all_are_a_difference(self):
        self.assertEqual(self.run_on("text\n", "--check")[0], 1)

    def test_accuracy_writes_the_table_that_is_asked_for(self):
        marks = "<!-- accuracy: memory {} -->\n{}<!-- end -->\n"
        for table, lines in {"sources": TABLE, "totals": "| rows | mean |\n|---|---:|\n| 2 | 0.5 % |"}.items():
            code, _, text = self.run_on(marks.format(table, ""), "--accuracy")
            self.assertEqual((code, text), (0, marks.format(table, lines + "\n")))

    def test_accuracy_is_left_alone_unless_asked_for(self):
        text = "<!-- accuracy: memory sources -->\nold\n<!-- end -->\n" + self.shown("echo a", "a")
        self.assertEqual(self.run_on(text)[2], text)

    def test_an_accuracy_table_that_there_is_not_exits_with_2(self):
        for table in ("memory", "memory rows", "space sources", "memory sweeps", "memory time sources"):
            self.assertEqual(self.run_on(f"<!-- accuracy: {table} -->\n<!-- end -->\n", "--accuracy")[0], 2, table)

    def test_an_accuracy_that_fails_exits_with_2(self):
        self.write("scripts/accuracy", "#!/bin/sh\necho 'error: not built' >&2; exit 3\n")
        code, output, _ = self.run_on("<!-- accuracy: memory sources -->\n<!-- end -->\n", "--accuracy")
        self.assertEqual(code, 2)
        self.assertIn("exit code 3\nerror: not built", output)

    def test_files_that_hold_a_pattern_are_listed_by_folder(self):
        for name, text in {"sim/a.cpp": "is_cut", "sim/b.h": "a CUT", "sim/in/c.cpp": "CUT", "sim/d.json": "CUT",
                           "sim/e.cpp": "whole", "models/f.cpp": "CUT"}.items():
            self.write(name, text)
        mark = "<!-- files: is_cut|CUT in sim -->\n{}<!-- end -->\n"
        listed = mark.format("- `sim`: `a.cpp`, `b.h`\n- `sim/in`: `c.cpp`\n")
        self.assertEqual(self.run_on(mark.format(""))[::2], (0, listed))
        self.assertEqual(self.run_on(listed, "--check")[0], 0)
        self.write("sim/e.cpp", "CUT")
        code, output, text = self.run_on(listed, "--check")
        self.assertEqual((code, text), (1, listed))
        self.assertIn("README.md:2: other files have is_cut|CUT: - `sim`: `a.cpp`, `b.h`, `e.cpp`", output)

    def test_files_of_a_folder_that_is_not_there_exit_with_2(self):
        for argument in ("CUT in none", "CUT"):
            self.assertEqual(self.run_on(f"<!-- files: {argument} -->\n<!-- end -->\n")[0], 2, argument)

    def test_links_files_and_flags_must_be_there(self):
        self.write("scripts/lib/accuracy.py", "")
        text = self.shown("echo a", "a")
        good = text + "[a](scripts/accuracy) [b](https://x.y/z) `scripts/accuracy` `--tp 8` `torchrun --nproc 2` `accuracy.*`\n"
        self.assertEqual(self.run_on(good, "--check")[0], 0)
        for wrong in ("[a](scripts/none)", "`scripts/none.py`", "`none.*`", "`--tensor 8`"):
            code, output, _ = self.run_on(text + wrong + "\n", "--check")
            self.assertEqual(code, 1, wrong)
            self.assertIn("README.md:7: no ", output)

    def test_without_a_build_it_is_skipped(self):
        self.assertEqual(self.run_on("", "--onerank", self.root / "none")[0], 77)


if __name__ == "__main__":
    unittest.main()
