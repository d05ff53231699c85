#!/usr/bin/python3
"""Tests of scripts/against-megatron: what it draws, what it compares, what it judges. Onerank and
Megatron-LM are fakes here."""
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS / "lib"))

from against.compare import Bytes, Call, Comparison, compare  # noqa: E402
from against.order import OrderedPart  # noqa: E402
from against.report import Row  # noqa: E402
from against.runs import Run  # noqa: E402
from against_megatron.configurations import (  # noqa: E402
    ADAPTERS, JUDGE, Configuration, draw_configuration, draw_configurations)

GIB = 1 << 30


def value_after(words, flag, default=None):
    return words[words.index(flag) + 1] if flag in words else default


def number_after(words, flag, default):
    return int(value_after(words, flag, default))


ENDS = [f"--decoder-{end}-pipeline-num-layers" for end in ("first", "last")]


def layers_to_deal(words):
    """Among stages whose layers nobody said."""
    return number_after(words, "--num-layers", 0) - sum(number_after(words, end, 0) for end in ENDS)


def stages_to_deal(words, stages):
    return stages - sum(end in words for end in ENDS)


def profile(allocated, calls=(), communicators=None):
    phases = [{"name": name, "before": {"allocated_bytes": before},
               "peak": {"allocated_bytes": peak}}
              for name, before, peak in (("build_model", 0, GIB),
                                         ("iteration_0.forward_backward", GIB, allocated),
                                         ("iteration_1.forward_backward", 2 * GIB, allocated))]
    found = {"peak": {"allocated_bytes": allocated, "reserved_bytes": allocated + GIB},
             "phases": phases, "collectives": list(calls)}
    if communicators is not None:
        found["program"] = {"communicators": communicators}
    return found


def call(kind="all_reduce", size=2, dtype="Float", count=1, bytes_=4096):
    return {"kind": kind, "group_size": size, "dtype": dtype, "bytes": bytes_,
            "executed_count": count}


def communicator(size, *calls):
    return {"size": size, "calls": [{"kind": kind, "dtype": dtype, "bytes": bytes_,
                                     "iteration_count": count}
                                    for kind, dtype, bytes_, count in calls]}


def tensor(bytes_, module="layers.3.mlp"):
    return {"requested_bytes": bytes_, "bytes": bytes_, "category": "activation",
            "module": module, "operator": "aten::mm"}


class Draws(unittest.TestCase):
    def test_are_the_same_for_a_seed_however_many_are_drawn(self):
        few = draw_configurations("7", 3, ["dense"])
        many = draw_configurations("7", 9, ["dense", "mla"])
        self.assertEqual(few, many[:3])
        self.assertNotEqual(few, draw_configurations("8", 3, ["dense"]))

    def test_divide_evenly(self):
        for family in ("dense", "experts", "mla", "local"):
            for number in range(200):
                configuration = draw_configuration("divide", number, family)
                words = configuration.words
                tensor_ranks = number_after(words, "--tensor-model-parallel-size", 1)
                stages = number_after(words, "--pipeline-model-parallel-size", 1)
                chunks = number_after(words, "--num-virtual-stages-per-pipeline-rank", 1)
                context = number_after(words, "--context-parallel-size", 1)
                heads = number_after(words, "--num-attention-heads", 0)
                groups = number_after(words, "--num-query-groups", heads)
                model_ranks = tensor_ranks * stages * context
                data = configuration.world_size // model_ranks
                micro_batches = (number_after(words, "--global-batch-size", 0) /
                                 number_after(words, "--micro-batch-size", 0) / data)
                with self.subTest(words=" ".join(words)):
                    self.assertEqual(configuration.world_size % model_ranks, 0)
                    self.assertLess(configuration.rank, configuration.world_size)
                    self.assertEqual(configuration.rank % tensor_ranks, 0)
                    self.assertEqual(heads % groups, 0)
                    self.assertEqual(groups % tensor_ranks, 0)
                    self.assertEqual(layers_to_deal(words) % (stages_to_deal(words, stages) * chunks), 0)
                    self.assertEqual(number_after(words, "--ffn-hidden-size", 0) % tensor_ranks, 0)
                    self.assertEqual(
                        number_after(words, "--seq-length", 0) % (2 * context * tensor_ranks), 0)
                    self.assertEqual(micro_batches, int(micro_batches))
                    if chunks > 1:
                        self.assertEqual(micro_batches % stages, 0)
                    if family == "mla":
                        self.assertEqual(number_after(words, "--hidden-size", 0) % heads, 0)
                    expert = number_after(words, "--expert-model-parallel-size", 1)
                    self.assertEqual(data % expert, 0)

    def test_have_what_trainings_of_the_field_add(self):
        drawn = {word for family in ("dense", "experts") for number in range(60)
                 for word in draw_configuration("wide", number, family).words}
        self.assertLessEqual({*ENDS, "--fp16", "sgd",
                              "--num-distributed-optimizer-instances", "--moe-layer-freq",
                              "--expert-tensor-parallel-size", "--moe-expert-capacity-factor",
                              "--overlap-p2p-communication-warmup-flush"}, drawn)

    def test_combine_techniques(self):
        words = {family: [draw_configuration("techniques", number, family).words for number in range(60)]
                 for family in ("dense", "fp8", "experts")}
        self.assertTrue(any("--sequence-parallel" not in of_one and number_after(of_one, "--tensor-model-parallel-size", 1) > 1
                            for of_one in words["dense"]))
        self.assertLessEqual({"--use-precision-aware-optimizer", "--defer-embedding-wgrad-compute",
                              "--microbatch-group-size-per-virtual-pipeline-stage",
                              "--overlap-moe-expert-parallel-comm", "--delay-wgrad-compute", "seq_aux_loss",
                              "--overlap-param-gather-with-optimizer-step", "--empty-unused-memory-level"},
                             {word for of_family in words.values() for of_one in of_family for word in of_one})

    def test_run_own_layers_without_libraries(self):
        for number in range(50):
            configuration = draw_configuration("own", number, "local")
            with self.subTest(words=" ".join(configuration.words)):
                self.assertEqual(configuration.needs, frozenset())
                self.assertNotIn("--sequence-parallel", configuration.words)
                for arguments in (configuration.onerank_arguments(), configuration.megatron_arguments()):
                    self.assertEqual(arguments[arguments.index("--transformer-impl") + 1], "local")
                    self.assertEqual(arguments.count("--no-rope-fusion"), 1)

    def test_give_adapters_that_tensor_ranks_divide_to_both_sides(self):
        for family in ADAPTERS:
            for number in range(30):
                configuration = draw_configuration("adapters", number, family)
                lora, ours = configuration.adapters(), configuration.onerank_arguments()
                self.assertEqual(lora["dim"], number_after(ours, "--lora-rank", 0))
                self.assertEqual(lora["dim"] % number_after(ours, "--tensor-model-parallel-size", 1), 0)
                self.assertEqual(",".join(lora.get("target_modules", [])),
                                 value_after(ours, "--lora-target-modules", ""))
                self.assertNotIn("--lora-rank", configuration.megatron_arguments())
        self.assertIsNone(draw_configuration("adapters", 0, "dense").adapters())

    def test_give_both_sides_the_vocabulary_that_the_null_tokenizer_has(self):
        configuration = draw_configuration("1", 0, "dense")
        self.assertEqual(number_after(configuration.onerank_arguments(), "--vocab-size", 0),
                         number_after(configuration.megatron_arguments(), "--vocab-size", 0))


class Compares(unittest.TestCase):
    def test_bytes_by_phase(self):
        found = compare(Run(profile(101 * GIB), []), Run(profile(100 * GIB, communicators=[]), []))
        self.assertAlmostEqual(found.allocated.error, 0.01)
        self.assertEqual(found.phases["iteration_0.forward_backward"], Bytes(101 * GIB, 100 * GIB))
        self.assertEqual(found.phases["between iterations"].error, 0)

    def test_collectives_by_kind_group_type_bytes_and_count(self):
        shard = profile(GIB, [call(count=3), call(count=2, bytes_=8192)])
        program = profile(GIB, communicators=[
            communicator(2, ("all_reduce", "Float", 4096, 3), ("all_reduce", "Float", 8192, 1))])
        found = compare(Run(shard, []), Run(program, []))
        self.assertEqual([(c.call, c.shard, c.program) for c in found.calls],
                         [(Call("all_reduce", 2, "Float", 8192), 2, 1)])

    def test_leaves_out_tokens_and_scalars_of_the_program_alone(self):
        program = profile(GIB, communicators=[
            communicator(2, ("broadcast", "Long", 65536, 4), ("all_reduce", "Float", 4, 9))])
        self.assertEqual(compare(Run(profile(GIB), []), Run(program, [])).calls, [])
        # The shard has some of them, such as the scales of 8-bit tensors, and never more.
        for count, differing in ((1, 0), (4, 0), (5, 1)):
            shard = profile(GIB, [call("broadcast", dtype="Long", bytes_=65536, count=count)])
            self.assertEqual(len(compare(Run(shard, []), Run(program, [])).calls), differing)

    def test_messages_by_their_two_ends_and_no_calls_of_one_rank(self):
        shard = profile(GIB, [call("send", size=4, count=3)])
        program = profile(GIB, communicators=[
            communicator(2, ("send", "Float", 4096, 3)),
            communicator(1, ("all_gather", "Float", 4096, 1))])
        self.assertEqual(compare(Run(shard, []), Run(program, [])).calls, [])

    def test_booleans_as_the_bytes_that_nccl_sends(self):
        shard = profile(GIB, [call("all_gather", dtype="Bool", count=2)])
        program = profile(GIB, communicators=[communicator(2, ("all_gather", "Byte", 4096, 2))])
        self.assertEqual(compare(Run(shard, []), Run(program, [])).calls, [])

    def test_an_all_to_all_as_the_messages_that_it_is(self):
        shard = profile(GIB, [call("all_to_all", size=4, count=3, bytes_=4096)])
        program = profile(GIB, communicators=[
            communicator(2, ("send", "Float", 1024, 12), ("recv", "Float", 1024, 12))])
        self.assertEqual(compare(Run(shard, []), Run(program, [])).calls, [])

    def test_what_was_asked_for_at_the_peak(self):
        shard = Run(profile(GIB), [{}, tensor(512), tensor(1024)])
        found = compare(shard, Run(profile(GIB, communicators=[]), [{}, tensor(512)]))
        self.assertEqual(found.requested, Bytes(1536, 512))

    def test_tensors_of_which_one_side_has_more(self):
        head = {"peak": {}}
        shard = Run(profile(GIB), [head, tensor(512), tensor(1024), tensor(1024)])
        program = Run(profile(GIB, communicators=[]), [head, tensor(512), tensor(2048)])
        found = compare(shard, program).tensors
        self.assertEqual([(t.bytes, t.shard, t.program, t.difference) for t in found],
                         [(1024, 2, 0, 2048), (2048, 0, 1, -2048)])
        self.assertEqual(found[0].example, "activation layers.*.mlp aten::mm")


def order(*events):
    """Of the shard's calls: (direction, chunk, place among the collectives, stream)."""
    directions, chunks, items, streams = zip(*events)
    return {"events": {"kind": [1] * len(events), "direction": directions, "chunk": chunks,
                       "item": items, "stream": streams}}


def trace(*launches):
    """Of the program's calls: (direction, bytes, stream), all-reduces of two ranks; kernels are on
    stream 7."""
    works = [{"kind": "kernel", "communicator": -1}]
    works += [{"kind": "collective", "name": "all_reduce", "dtype": "Float", "bytes": bytes_,
               "communicator": 0} for _, bytes_, _ in launches]
    count = len(launches) + 1
    return {"works": works, "modules": ["", "layers.0"], "events": {
        "kind": [0] * count, "module": [1] * count, "stream": [7, *(stream for _, _, stream in launches)],
        "item": list(range(count)), "direction": [0, *(part for part, _, _ in launches)]}}


FORWARD, BACKWARD, BETWEEN, OPTIMIZER = 0, 2, 3, 4
MAIN = 7


class ComparesOrders(unittest.TestCase):
    def orders(self, shard_events, launches, calls, chunks=1, stages=1, micro_batches=2,
               overlaps=False, framework="megatron-lm", modules=None, stage=0, overlaps_gathers=False):
        shard = profile(GIB, calls)
        shard["order"] = order(*shard_events)
        shard["plan"] = {"parallelism": {"virtual_stages": chunks, "pipeline": stages,
                                           "overlap_grad_reduce": overlaps,
                                           "overlap_param_gather": overlaps_gathers},
                         "training": {"framework": framework}}
        shard["coordinate"] = {"pp": stage}
        shard["micro_batches"] = {"total": micro_batches}
        counts = collections.Counter(bytes_ for _, bytes_, _ in launches)
        program = profile(GIB, communicators=[
            communicator(2, *(("all_reduce", "Float", bytes_, n) for bytes_, n in counts.items()))])
        program["trace"] = trace(*launches)
        if modules:
            program["trace"]["events"]["module"] = [1, *modules]
        return compare(Run(shard, []), Run(program, [])).order

    def test_with_what_happens_once_in_the_first_forward_and_the_last_backward(self):
        calls = [call(count=2, bytes_=100), call(count=1, bytes_=200), call(count=2, bytes_=300),
                 call(count=1, bytes_=400)]
        shard = [(FORWARD, 0, 0, 0), (FORWARD, 0, 1, 1), (BACKWARD, 0, 2, 0), (BACKWARD, 0, 3, 2)]
        program = [(FORWARD, 100, MAIN), (FORWARD, 200, 8), (BACKWARD, 300, MAIN),
                   (FORWARD, 100, MAIN), (BACKWARD, 300, MAIN), (BACKWARD, 400, 9)]
        self.assertEqual(self.orders(shard, program, calls), [])
        program.insert(0, program.pop())
        [found] = self.orders(shard, program, calls)
        self.assertEqual((found.part, found.calls), ("backward", 3))
        self.assertEqual(found.place, 0)
        self.assertIn("400 bytes beside kernels", found.program)

    def test_of_chunks_as_the_schedule_takes_their_turns(self):
        calls = [call(count=4, bytes_=100), call(count=4, bytes_=200)]
        shard = [(FORWARD, 0, 0, 0), (FORWARD, 1, 1, 0)]
        turns = [100, 100, 200, 200, 100, 100, 200, 200]
        program = [(FORWARD, bytes_, MAIN) for bytes_ in turns]
        arguments = {"chunks": 2, "stages": 2, "micro_batches": 4}
        self.assertEqual(self.orders(shard, program, calls, **arguments), [])
        turns.sort()
        program = [(FORWARD, bytes_, MAIN) for bytes_ in turns]
        self.assertEqual(len(self.orders(shard, program, calls, **arguments)), 1)

    def test_with_overlapped_reductions_in_backward(self):
        calls = [call(count=2, bytes_=100), call(count=1, bytes_=200)]
        shard = [(BACKWARD, 0, 0, 0), (BETWEEN, 0, 1, 1)]
        program = [(BACKWARD, 100, MAIN), (BACKWARD, 100, MAIN), (BACKWARD, 200, 8)]
        self.assertEqual(self.orders(shard, program, calls, overlaps=True), [])
        self.assertEqual(len(self.orders(shard, program, calls)), 2)

    def test_with_reductions_behind_the_backward_of_later_stages_and_of_several_chunks(self):
        calls = [call(count=2, bytes_=100), call(count=1, bytes_=200)]
        shard = [(BACKWARD, 0, 0, 0), (BETWEEN, 0, 1, 1)]
        program = [(BACKWARD, 100, MAIN), (BACKWARD, 100, MAIN), (BETWEEN, 200, 8)]
        self.assertEqual(self.orders(shard, program, calls, stages=2, stage=1, overlaps=True), [])
        self.assertEqual(len(self.orders(shard, program, calls, stages=2, overlaps=True)), 2)
        chunks = [(BETWEEN, 0, 1, 1)]
        behind = [(BETWEEN, 200, 8)]
        self.assertEqual(self.orders(chunks, behind, calls, chunks=2, stages=2, overlaps=True), [])

    def test_of_gathers_that_the_next_forward_starts_among_themselves(self):
        calls = [call(count=1, bytes_=100), call(count=1, bytes_=200)]
        shard = [(OPTIMIZER, 0, 0, 1), (OPTIMIZER, 0, 1, 1)]
        program = [(FORWARD, 100, 8), (FORWARD, 200, 8)]
        self.assertEqual(self.orders(shard, program, calls, overlaps_gathers=True), [])
        self.assertEqual(len(self.orders(shard, program, calls)), 2)
        program.reverse()
        self.assertEqual(len(self.orders(shard, program, calls, overlaps_gathers=True)), 1)

    def test_and_whether_kernels_go_on_beside_them(self):
        calls = [call(count=1, bytes_=100)]
        self.assertEqual(self.orders([(OPTIMIZER, -1, 0, 0)], [(OPTIMIZER, 100, MAIN)], calls), [])
        [found] = self.orders([(OPTIMIZER, -1, 0, 0)], [(OPTIMIZER, 100, 8)], calls)
        self.assertEqual((found.part, found.moved), ("rest", 1))

    def test_of_the_whole_step_where_hooks_belong_to_no_module(self):
        calls = [call(count=2, bytes_=100), call(count=2, bytes_=200), call(count=1, bytes_=300)]
        shard = [(FORWARD, 0, 0, 0), (BACKWARD, 0, 1, 0), (BACKWARD, 0, 2, 0)]
        program = [(FORWARD, 100, MAIN), (BACKWARD, 200, MAIN), (FORWARD, 100, MAIN),
                   (BACKWARD, 200, MAIN), (OPTIMIZER, 300, MAIN)]
        hooked = {"framework": "transformers", "modules": [0, 1, 0, 1, 0]}
        self.assertEqual(self.orders(shard, program, calls, **hooked), [])
        self.assertEqual([part.part for part in self.orders(shard, program, calls, modules=hooked["modules"])],
                         ["forward", "backward", "rest"])
        program.insert(0, program.pop())  # the trace begins with the end of the step before
        self.assertEqual(self.orders(shard, program, calls, **hooked), [])
        program.insert(1, program.pop())
        [found] = self.orders(shard, program, calls, **hooked)
        self.assertEqual((found.part, found.calls), ("step", 5))

    def test_of_the_rest_wherever_the_trace_begins(self):
        calls = [call(count=1, bytes_=bytes_) for bytes_ in (100, 200, 300)]
        shard = [(OPTIMIZER, 0, item, 0) for item in range(3)]
        program = [(OPTIMIZER, bytes_, MAIN) for bytes_ in (300, 100, 200)]
        self.assertEqual(self.orders(shard, program, calls), [])
        program.reverse()
        self.assertEqual(len(self.orders(shard, program, calls)), 1)

    def test_of_hooks_in_a_pipeline_among_those_that_both_make_elsewhere(self):
        calls = [call(count=1, bytes_=100), call(count=1, bytes_=200), call(count=2, bytes_=300)]
        shard = [(OPTIMIZER, 0, 0, 0), (OPTIMIZER, 0, 1, 0), (FORWARD, 0, 2, 0)]
        program = [(FORWARD, 100, MAIN), (FORWARD, 300, MAIN), (FORWARD, 200, MAIN), (FORWARD, 300, MAIN)]
        hooked = {"framework": "torchtitan", "stages": 2}
        self.assertEqual(self.orders(shard, program, calls, **hooked), [])
        self.assertEqual(len(self.orders(shard, program, calls, stages=2)), 2)
        program[0], program[2] = program[2], program[0]
        [found] = self.orders(shard, program, calls, **hooked)
        self.assertEqual((found.part, found.moved), ("rest (forward of the program)", 2))

    def test_of_calls_that_both_make(self):
        calls = [call(count=2, bytes_=100)]
        program = [(OPTIMIZER, 900, MAIN), (FORWARD, 100, MAIN), (FORWARD, 100, MAIN)]
        self.assertEqual(self.orders([(FORWARD, 0, 0, 0)], program, calls), [])

    def test_not_of_profiles_without_a_trace(self):
        self.assertEqual(compare(Run(profile(GIB), []),
                                 Run(profile(GIB, communicators=[]), [])).order, [])


def row(error, family="dense", calls=(), order_=()):
    configuration = Configuration(name="c", family=family, world_size=1, rank=0, vocabulary=8,
                                  words=())
    allocated = Bytes(round((1 + error) * 1_000_000), 1_000_000)
    return Row(configuration, Comparison(allocated, allocated, allocated, {}, list(calls),
                                     list(order_), []))


class Judges(unittest.TestCase):
    def test_nine_of_ten_dense_ones_within_a_thousandth(self):
        self.assertEqual(JUDGE.breaches([row(0.0009)] * 9 + [row(-0.0029)]), [])
        self.assertEqual(len(JUDGE.breaches([row(0.0009)] * 8 + [row(0.002)] * 2)), 1)

    def test_all_within_three_thousandths(self):
        self.assertEqual(JUDGE.breaches([row(0.0029, "experts")]), [])
        self.assertEqual(len(JUDGE.breaches([row(-0.0031, "experts")])), 1)

    def test_collectives_that_differ(self):
        self.assertEqual(len(JUDGE.breaches([row(0, calls=[object()])])), 1)

    def test_collectives_in_another_order(self):
        part = OrderedPart("forward", 4, 2, 1, "nothing", "all_reduce")
        self.assertEqual(len(JUDGE.breaches([row(0, order_=[part])])), 1)

    def test_runs_that_failed_are_in_the_table_and_are_not_judged(self):
        failed = Row(row(0).configuration, failure="exit code 3: no kernel\n  see log")
        self.assertEqual(JUDGE.breaches([failed]), [])
        self.assertIn("not compared: exit code 3: no kernel", JUDGE.table([failed]))


FAKE_ONERANK = """#!/usr/bin/python3
import json, pathlib, sys
words = sys.argv[1:]
if words[0] == "estimate":
    is_program = "--profiles" in words
    seconds = {{"iteration_seconds": 0.5 if is_program else 0.49}}
    print(json.dumps({{"time": seconds}}))
    sys.exit(0)
peak = {allocated}[words[0]]
profile = {{"peak": {{"allocated_bytes": peak, "reserved_bytes": peak}}, "phases": [],
           "collectives": [], "program": {{"communicators": []}}}}
place = pathlib.Path(words[words.index("--output") + 1])
rank = int(words[words.index("--rank") + 1])
if words[0] == "exec":
    place.mkdir(exist_ok=True)
    place = place / f"rank-{{rank:05d}}.json"
place.write_text(json.dumps(profile))
"""


class Program(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "megatron").mkdir()
        (self.folder / "megatron/pretrain_gpt.py").touch()

    def run_with(self, shard, program, *arguments):
        onerank = self.folder / "onerank"
        onerank.write_text(FAKE_ONERANK.format(allocated={"run": shard, "exec": program}))
        onerank.chmod(0o755)
        output = self.folder / "out"
        output.mkdir(exist_ok=True)
        library = output / "libfused_attention.so"
        library.touch()
        os.utime(library, (1 << 33, 1 << 33))  # newer than its source: not built
        return subprocess.run(
            [SCRIPTS / "against-megatron", "--build", self.folder, "--megatron",
             self.folder / "megatron", "--python", sys.executable, "--output", output, "--count",
             "1", "--family", "dense", *arguments], capture_output=True, text=True, check=False)

    def test_ends_with_4_where_a_difference_exceeds_the_bounds(self):
        done = self.run_with(GIB, 2 * GIB)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("-50.000%", done.stdout)
        document = json.loads((self.folder / "out/report.json").read_text())
        self.assertEqual(document["rows"][0]["comparison"]["allocated"]["program"], 2 * GIB)

    def test_ends_with_0_within_them(self):
        done = self.run_with(GIB, GIB)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_shows_both_step_times_where_there_is_no_pipeline(self):
        words = ["--seed", "3", "--count", "10"]
        self.assertIn("| 500.0 | -2.0% |",
                      self.run_with(GIB, GIB, *words, "--only", "dense-9").stdout)
        self.assertIn("| 0 | 0 |  |  |", self.run_with(GIB, GIB, *words, "--only", "dense-0").stdout)

    def test_ends_with_3_without_megatron(self):
        done = self.run_with(GIB, GIB, "--megatron", self.folder / "nowhere")
        self.assertEqual(done.returncode, 3)
        self.assertIn("pretrain_gpt.py is not there", done.stderr)

    def test_ends_with_2_for_a_count_that_is_none(self):
        self.assertEqual(self.run_with(GIB, GIB, "--count", "0").returncode, 2)


if __name__ == "__main__":
    unittest.main()
