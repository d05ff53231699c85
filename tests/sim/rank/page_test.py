#!/usr/bin/env python3
"""Pages of --html: whole, small, without the network, and alive in a browser.

    page_test.py ONERANK

What is alive in them needs Chromium, and is skipped without it.
"""
import functools
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ONERANK = sys.argv[1]
ROOT = pathlib.Path(__file__).resolve().parents[3]
PLANS = ROOT / "scripts/plans"
LARGEST = 1_000_000  # bytes
HOSTILE = "</script><img src=x onerror=alert(1)>&\"'"
VOID = {"meta", "link", "br", "hr", "img", "input", "wbr"}
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
RESULT = "data-result"


class Document(html.parser.HTMLParser):
    """Notes what is not closed, ids, links, and everything that a browser would load."""

    def __init__(self, text):
        super().__init__()
        self.open, self.faults, self.ids, self.links, self.loads, self.tags = [], [], [], [], [], set()
        self.feed(text)
        self.faults += [f"{tag} is not closed" for tag in self.open]

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            if name == "href":
                self.links.append(value)
            if name in ("src", "srcset", "data", "action", "poster") or name.startswith("on"):
                self.loads.append(f"{tag} {name}={value}")

    def handle_endtag(self, tag):
        if not self.open or self.open[-1] != tag:
            self.faults.append(f"</{tag}> closes {self.open[-1:]}")
        else:
            self.open.pop()


@functools.cache
def made_pages():
    """The folder that all tests share, and make_pages() of it."""
    folder = tempfile.TemporaryDirectory()
    return folder, make_pages(pathlib.Path(folder.name))


def make_pages(folder):
    """{name: the text of a page} of each command."""
    hostile = json.loads((PLANS / "llama3-8b-8xh100.json").read_text())
    hostile["name"] = HOSTILE
    hostile_plan = folder / "hostile.json"
    hostile_plan.write_text(json.dumps(hostile))
    small = str(PLANS / "llama3-8b-8xh100.json")
    commands = {
        "estimate": ["estimate", str(PLANS / "llama3-405b-16384xh100.json"), "--no-advice", "--exit-zero"],
        "hostile": ["estimate", str(hostile_plan), "--no-advice"],
        "run": ["run", small, "--peak-snapshot", str(folder / "peak.jsonl")],
        "memory": ["memory", str(folder / "peak.jsonl")],
        "sweep": ["sweep", small, "--mbs", "1,2", "--seq-length", "2k,4k,8k"],
        "diff": ["diff", small, "--recompute-granularity", "selective,full"],
        # 20 layouts, of which five are on the front.
        "search": ["search", "--model", "llama3-8b", "--num-layers", "4", "--gpu", "h100", "--gpus", "8",
                   "--global-batch-size", "64", "--tp", "2", "--pp", "1", "--cp", "1", "--top", "1"],
    }
    pages = {}
    for name, command in commands.items():
        path = folder / f"{name}.html"
        subprocess.run([ONERANK, *command, "--html", str(path)], check=True, capture_output=True, text=True)
        pages[name] = path.read_text()
    return pages


class Files(unittest.TestCase):
    def setUp(self):
        self.folder, self.pages = made_pages()

    def each(self):
        for name, text in self.pages.items():
            with self.subTest(name):
                yield name, text, Document(text)

    def test_AreWellFormed(self):
        for _, _, document in self.each():
            self.assertEqual(document.faults, [])
            self.assertEqual(len(document.ids), len(set(document.ids)))

    def test_AreSmall(self):
        for _, text, _ in self.each():
            self.assertLess(len(text.encode()), LARGEST)

    def test_LoadNothing(self):
        for _, text, document in self.each():
            self.assertEqual(document.loads, [])
            self.assertNotIn("link", document.tags)
            self.assertEqual([link for link in document.links if link[1:] not in document.ids], [])
            self.assertNotRegex(text, r"url\(|@import|fetch\(|XMLHttpRequest|import\s*\(")

    def test_EscapeNames(self):
        document = Document(self.pages["hostile"])
        self.assertNotIn("img", document.tags)
        self.assertEqual(document.faults, [])
        data = re.search(r'id="data">(.*?)</script>', self.pages["hostile"], re.DOTALL).group(1)
        self.assertEqual(json.loads(data)["estimate"]["plan"]["name"], HOSTILE)

    def test_HaveTheRowsOfTheText(self):
        text = self.pages["estimate"]
        for words in ("3,187,933,184", "pipeline bubble", "linear_fc1", "Not modelled", "NCCL tensor group of 8"):
            self.assertIn(words, text)

    def test_AreNotWrittenWhereTheyCannotBe(self):
        result = subprocess.run([ONERANK, "estimate", str(PLANS / "llama3-8b-8xh100.json"), "--html", "/no/such/page.html"],
                                capture_output=True, text=True)
        self.assertEqual(result.returncode, 2)
        self.assertIn("--html", result.stderr)


# Runs in the page before its own script: collects errors.
WATCH = """<script>window.faults = [];
addEventListener("error", (event) => faults.push(event.message));
addEventListener("unhandledrejection", (event) => faults.push(String(event.reason)));
addEventListener("securitypolicyviolation", (event) => faults.push(event.violatedDirective + event.blockedURI));
</script>"""

# Runs after it: clicks, types, and writes down what it sees.
ACT = """<script>
const seen = { width: document.documentElement.scrollWidth, room: innerWidth };
seen.figures = Object.fromEntries([...document.querySelectorAll("figure")].map((figure) =>
  [figure.dataset.picture, !figure.hidden && figure.querySelectorAll("svg *, canvas").length]));
const table = [...document.querySelectorAll("main table:not(.tensors)")].find((one) => one.tBodies[0].rows.length > 2);
const column = (index) => [...table.tBodies[0].rows].map((row) => row.cells[index].textContent);
const heads = [...table.tHead.rows[0].cells].map((head) => head.querySelector("button")).filter(Boolean);
const numbers = heads.findLast((head) => head.parentElement.classList.contains("number"));
if (numbers) {
  const index = numbers.parentElement.cellIndex;
  numbers.click();
  seen.descending = column(index);
  numbers.click();
  seen.ascending = column(index);
  seen.sort = numbers.parentElement.getAttribute("aria-sort");
}
const tree = document.querySelector(".tree");
if (tree) {
  const field = tree.parentElement.querySelector("input[type=search]");
  const shown = () => [...tree.querySelectorAll("details.module")].filter((one) => one.checkVisibility()).length;
  seen.modules = shown();
  field.value = "linear_fc1";
  field.dispatchEvent(new Event("input"));
  seen.filtered = shown();
  field.value = "";
  field.dispatchEvent(new Event("input"));
  [...tree.parentElement.querySelectorAll("button")].find((one) => one.textContent === "Open all").click();
  seen.opened = tree.querySelectorAll("details.module[open]").length;
  seen.all = tree.querySelectorAll("details.module").length;
  for (const one of tree.querySelectorAll("details.module")) one.open = false;
  document.querySelector("[data-picture=treemap] g").dispatchEvent(new MouseEvent("click", { bubbles: true }));
  seen.clicked = tree.querySelectorAll("details.module[open]").length;
}
const stages = [...document.querySelectorAll(".stage[tabindex]")];
seen.keys = stages.map((stage) => {
  stage.focus();
  stage.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
  return document.getElementById("tip").textContent;
});
const bar = document.querySelector("[data-picture=classes] g");
if (bar) { bar.focus(); seen.bar = document.getElementById("tip").textContent; }
const zoom = document.querySelector("[data-picture=step] button");
if (zoom) zoom.click();
seen.papers = ["light", "dark"].map((theme) => {
  document.documentElement.dataset.theme = theme;
  return getComputedStyle(document.body).backgroundColor;
});
redrawAll();
seen.faults = faults;
document.body.setAttribute("%s", JSON.stringify(seen));
</script>""" % RESULT


@unittest.skipUnless(CHROMIUM, "no Chromium here (Debian: apt-get install chromium)")
class Browser(unittest.TestCase):
    def setUp(self):
        self.folder, self.pages = made_pages()

    def seen(self, name, widths):
        """What ACT saw in windows of these widths. Chromium's own is 500 wide at least: a frame is not."""
        folder = pathlib.Path(self.folder.name)
        text = self.pages[name].replace("<title>", WATCH + "<title>", 1)
        text = text[:text.rindex("</body>")] + ACT + text[text.rindex("</body>"):]
        (folder / "page.html").write_text(text)
        frames = [f'<iframe src="page.html" style="width:{width}px;height:900px;border:0"></iframe>' for width in widths]
        (folder / "frames.html").write_text("".join(frames) + """<script>
onload = () => document.body.setAttribute("%s", JSON.stringify(
  [...document.querySelectorAll("iframe")].map((one) => JSON.parse(one.contentDocument.body.getAttribute("%s")))));
</script>""" % (RESULT, RESULT))
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
                   f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=5000", "--window-size=1500,1000",
                   "--dump-dom", f"file://{folder / 'frames.html'}"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=120)
        found = re.search(RESULT + '="([^"]*)"', result.stdout)
        self.assertIsNotNone(found, result.stdout[-500:] + result.stderr[-500:])
        return json.loads(html.unescape(found.group(1)))

    def numbers(self, cells):
        return [float(cell.split()[0].replace(",", "")) for cell in cells if cell]

    def check(self, name, figures):
        widths = (400, 1400)
        for width, seen in zip(widths, self.seen(name, widths)):
            with self.subTest(f"{name} {width} wide"):
                self.assertEqual(seen["faults"], [])
                self.assertEqual(seen["room"], width)
                self.assertLessEqual(seen["width"], width)
                self.assertEqual(set(seen["figures"]), set(figures))
                for figure, parts in seen["figures"].items():
                    self.assertTrue(parts, figure)
                self.assertNotEqual(*seen["papers"])
                self.assertNotIn("", seen["keys"])
        return seen

    def test_EstimateIsDrawnSortedFilteredAndReadWithTheKeyboard(self):
        seen = self.check("estimate", ["classes", "history", "treemap", "parts", "step", "roofline"])
        totals = self.numbers(seen["ascending"])
        self.assertEqual(totals, sorted(totals))
        self.assertEqual(self.numbers(seen["descending"]), totals[::-1])
        self.assertEqual(seen["sort"], "ascending")
        self.assertEqual(seen["filtered"], 3)  # layers.*, mlp, linear_fc1
        self.assertGreater(seen["modules"], seen["filtered"])
        self.assertEqual(seen["opened"], seen["all"])
        self.assertGreaterEqual(seen["clicked"], 2)
        self.assertIn("rank 0:", seen["bar"])
        self.assertEqual(len(seen["keys"]), 2)  # history and step

    def test_HostileNamesRunNothing(self):
        self.check("hostile", ["classes", "history", "treemap", "parts", "step", "roofline"])

    def test_OneRankIsDrawn(self):
        self.check("run", ["history", "treemap"])
        self.check("memory", ["treemap"])

    def test_ComparisonsAreDrawn(self):
        self.check("sweep", ["sweep-growth", "sweep-trade"])
        self.check("diff", ["diff"])
        self.check("search", ["search-front"])


if __name__ == "__main__":
    os.umask(0o077)
    unittest.main(argv=[sys.argv[0], "-v"])
