#!/usr/bin/env python3
"""The memory files of `onerank run` and `onerank exec`, read as their readers read them: the history with Python's pickle,
torch's own _memory_viz.py and the rules of the viewer in the browser; the timeline as CSV.

    memory_files_test.py ONERANK TORCH_DIR TEST...
"""
import csv
import importlib.util
import json
import pathlib
import pickle
import subprocess
import sys
import tempfile
import unittest

ONERANK, TORCH = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
FLAGS = ["--model", "gpt2", "--num-layers", "2", "--gpu", "h100", "--nodes", "1", "--gpus-per-node", "2", "--tp", "2",
         "--micro-batch-size", "1", "--global-batch-size", "4"]


def run(folder, *flags):
    """Runs rank 1; the paths of its history, its timeline and its profile, and what torch says its peak was."""
    files = [folder / name for name in ("history.pickle", "timeline.csv", "profile.json")]
    command = [ONERANK, "run", "--rank", "1", "--device", "virtual", *FLAGS, "--memory-history", files[0],
               "--memory-timeline", files[1], "--output", files[2], *flags]
    subprocess.run(command, check=True, capture_output=True)
    return *files, json.loads(files[2].read_text())["allocator"]["requested_peak_bytes"]


def run_program(folder, *flags):
    """The same for a program in Python, as rank 1 of 2."""
    files = [folder / name for name in ("history.pickle", "timeline.csv", "rank-00001.json")]
    python = TORCH.parents[3] / "bin" / "python"
    program = pathlib.Path(__file__).parents[1] / "exec" / "programs" / "plain.py"
    command = [ONERANK, "exec", "--rank", "1", "--world-size", "2", "--memory-history", files[0],
               "--memory-timeline", files[1], "--output", folder, *flags, "--", python, program]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    words = result.stdout.split()
    return *files, int(words[words.index("requested") + 1])


class OneRun:
    """Runs once for all tests of a class."""
    settings = []
    program = staticmethod(run)
    modules = ["layers.0.mlp.linear_fc1", "optimizer"]
    layout = (2, 1)  # tensor, data

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.history_file, cls.timeline_file, profile, cls.requested_peak_bytes = cls.program(
            pathlib.Path(cls.folder.name), *cls.settings)
        cls.history = pickle.loads(cls.history_file.read_bytes())
        cls.profile = json.loads(profile.read_text())

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def trace(self):
        self.assertEqual(len(self.history["device_traces"]), 1)
        return self.history["device_traces"][0]

    def test_blocks_fill_their_segments(self):
        self.assertTrue(self.history["segments"])
        for segment in self.history["segments"]:
            address = segment["address"]
            for block in segment["blocks"]:
                self.assertEqual(block["address"], address)
                address += block["size"]
            self.assertEqual(address, segment["address"] + segment["total_size"])

    def test_segments_are_those_that_the_trace_leaves(self):
        reserved = set()
        for event in self.trace():
            span = (event.get("addr"), event["size"])
            if event["action"] == "segment_alloc":
                reserved.add(span)
            elif event["action"] == "segment_free":
                reserved.remove(span)
        whole = {(s["address"], s["total_size"]) for s in self.history["segments"] if not s["is_expandable"]}
        self.assertEqual(reserved, whole)
        mapped = sum({"segment_map": 1, "segment_unmap": -1}.get(e["action"], 0) * e["size"] for e in self.trace())
        expandable = sum(s["total_size"] for s in self.history["segments"] if s["is_expandable"])
        self.assertEqual(mapped, expandable)

    def test_live_blocks_are_those_that_the_trace_leaves(self):
        alive = {}
        for event in self.trace():
            if event["action"] == "alloc":
                self.assertNotIn(event["addr"], alive)
                alive[event["addr"]] = event["size"]
            elif event["action"] == "free_completed":
                del alive[event["addr"]]
        blocks = {block["address"]: block["requested_size"] for segment in self.history["segments"]
                  for block in segment["blocks"] if block["state"] == "active_allocated"}
        self.assertEqual(alive, blocks)

    def test_a_free_is_requested_and_completed(self):
        trace = self.trace()
        for event, following in zip(trace, trace[1:]):
            if event["action"] == "free_requested":
                self.assertEqual((following["action"], following["addr"]), ("free_completed", event["addr"]))

    def test_peak_of_the_trace_is_the_profiles(self):
        requested = peak = 0
        sizes = {}
        for event in self.trace():
            if event["action"] == "alloc":
                sizes[event["addr"]] = event["size"]
                requested += event["size"]
                peak = max(peak, requested)
            elif event["action"] == "free_requested":
                requested -= sizes.pop(event["addr"])
        self.assertEqual(peak, self.requested_peak_bytes)

    def test_frames_have_what_the_viewers_ask_for(self):
        modules = set()
        for event in self.trace():
            for frame in event["frames"]:
                self.assertEqual(set(frame), {"name", "filename", "line"})
                if frame["filename"] == "module":
                    modules.add(frame["name"])
        for module in self.modules:
            self.assertIn(module, modules)

    def test_names_rank_world_layout_and_tool(self):
        about = self.history["onerank"]
        self.assertEqual((about["rank"], about["world_size"]), (1, 2))
        self.assertEqual((about["layout"]["tensor"], about["layout"]["data"]), self.layout)
        self.assertEqual(about["tool"], self.profile["tool"])

    def test_annotations_are_the_phases(self):
        starts = [a["name"] for a in self.history["external_annotations"] if a["stage"] == "START"]
        self.assertEqual(starts, [phase["name"] for phase in self.profile["phases"]])
        times = [a["time_us"] for a in self.history["external_annotations"]]
        self.assertEqual(times, sorted(times))

    def test_memory_viz_of_torch_reads_it(self):
        viz = TORCH / "cuda" / "_memory_viz.py"
        for command, says in (("stats", "total_allocated"), ("trace", "free completed for")):
            result = subprocess.run([sys.executable, viz, command, self.history_file], capture_output=True, text=True)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertTrue(says in result.stdout, f"{command} says nothing of {says}")

    def test_flame_graphs_of_torch_are_by_module(self):
        """segments and memory end by downloading the program that draws them."""
        spec = importlib.util.spec_from_file_location("memory_viz", TORCH / "cuda" / "_memory_viz.py")
        viz = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(viz)
        self.assertIn("active_allocated", viz.segments(self.history, str))
        self.assertIn(";module:0:optimizer;", viz.memory(self.history, str))

    def test_timeline_ends_where_the_phases_end_and_reaches_the_peak(self):
        with open(self.timeline_file, newline="") as file:
            rows = list(csv.DictReader(file))
        categories = [key for key in rows[0] if key.endswith("_bytes")][2:]
        self.assertEqual(len(categories), 8)
        for row in rows:
            self.assertEqual(sum(int(row[key]) for key in categories), int(row["allocated_bytes"]))
        self.assertEqual(max(int(row["allocated_bytes"]) for row in rows), self.profile["peak"]["allocated_bytes"])
        self.assertEqual(max(int(row["reserved_bytes"]) for row in rows), self.profile["peak"]["reserved_bytes"])
        for phase in self.profile["phases"]:
            of_phase = [row for row in rows if row["phase"] == phase["name"]]
            if of_phase:  # the last optimizer step of a model without sharding makes nothing
                self.assertEqual(int(of_phase[-1]["allocated_bytes"]), phase["after"]["allocated_bytes"])
        self.assertGreaterEqual(len({row["phase"] for row in rows}), 5)


class DefaultAllocator(OneRun, unittest.TestCase):
    def test_settings_are_the_defaults(self):
        self.assertFalse(self.history["allocator_settings"]["expandable_segments"])


class ExpandableSegments(OneRun, unittest.TestCase):
    settings = ["--allocator", "expandable_segments:True"]

    def test_settings_are_in_force(self):
        settings = self.history["allocator_settings"]
        self.assertTrue(settings["expandable_segments"])
        self.assertEqual(settings["PYTORCH_CUDA_ALLOC_CONF"], "expandable_segments:True")
        self.assertTrue(all(segment["is_expandable"] for segment in self.history["segments"]))


class ExecProgram(OneRun, unittest.TestCase):
    program = staticmethod(run_program)
    modules = ["0", "2", "optimizer"]
    layout = (1, 1)  # a program's layout is not known

    def test_blocks_are_described(self):
        described = {event["user_metadata"] for event in self.trace()}
        self.assertIn("parameter of 0.weight Float [2048, 512]", described)
        self.assertIn("gradient of 2.weight Float [512, 2048]", described)
        self.assertIn("optimizer_state of 2.weight Float [512, 2048]", described)
        self.assertIn("activation Float [32, 2048]", described)


class CppFrames(unittest.TestCase):
    def test_name_the_functions_of_the_shard(self):
        with tempfile.TemporaryDirectory() as folder:
            snapshot = pathlib.Path(folder) / "peak.jsonl"
            subprocess.run([ONERANK, "run", "--device", "virtual", *FLAGS, "--peak-snapshot", snapshot, "--cpp-frames"],
                           check=True, capture_output=True)
            rows = [json.loads(line) for line in snapshot.read_text().splitlines()[1:]]
        frames = [frame for row in rows for frame in row["frames"]]
        self.assertTrue(any("models::Trainer::forward_backward" in frame for frame in frames))
        self.assertFalse(any("sim::RunTracker" in frame for frame in frames))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
