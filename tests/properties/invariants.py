"""What holds in every estimate, and between the estimates of plans that differ in one thing."""
import math

SIGNED = {"headroom_bytes", "free_bytes", "peer", "gain_bytes", "gain_seconds", "error"}
RECOMPUTE = ["none", "selective", "full"]
ROUNDING = 1e-9  # relative: of sums of doubles in another order
# A host that is slower than its GPU issues the calls between the kernels of the backward, which then wait for it.
ISSUED_EARLIER = 1e-3
# Keys of parallelism that hide communication, and others with which each may be on or off.
OVERLAPS = {"overlap_grad_reduce": {"overlap_param_gather": False}, "overlap_param_gather": {"overlap_grad_reduce": True},
            "overlap_p2p_communication": {}, "tp_comm_overlap": {"sequence_parallel": True}}


class Violation(Exception):
    """What does not hold, with the numbers."""


def expect(holds, what):
    if not holds:
        raise Violation(what)


def expect_equal_document(left, right, what):
    expect(left == right, f"{what}: {first_difference(left, right)}")


def first_difference(left, right, path=""):
    if isinstance(left, dict) and isinstance(right, dict):
        for key in [*left, *right]:
            if left.get(key) != right.get(key):
                return first_difference(left.get(key), right.get(key), f"{path}.{key}")
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for i, (a, b) in enumerate(zip(left, right)):
            if a != b:
                return first_difference(a, b, f"{path}[{i}]")
    return f"{path} is {str(left)[:100]} and {str(right)[:100]}"


def expect_sound_numbers(json, path="estimate"):
    key = path.rsplit(".", 1)[-1]
    if isinstance(json, dict):
        for name, value in json.items():
            if name != "plan":  # what was asked, not what was found
                expect_sound_numbers(value, f"{path}.{name}")
    elif isinstance(json, list):
        for value in json:
            expect_sound_numbers(value, path)
    elif isinstance(json, (int, float)) and not isinstance(json, bool):
        expect(math.isfinite(json) and (json >= 0 or key in SIGNED), f"{path} is {json}")
    else:
        expect(json is not None, f"{path} is null")


def allocated(estimate):
    return max(each["allocated_peak_bytes"] for each in estimate["rank_classes"])


def expect_sound_memory(estimate):
    cluster, verdict, classes = estimate["plan"]["cluster"], estimate["verdict"], estimate["rank_classes"]
    world = cluster["nodes"] * cluster["gpus_per_node"]
    expect(sum(each["count"] for each in classes) == world, f"classes do not add up to {world} ranks")
    for each in classes:
        rank, total = each["representative_rank"], each["total_bytes"]
        expect(each["allocated_peak_bytes"] <= each["reserved_peak_bytes"] <= total,
               f"rank {rank}: allocated, reserved and total are not in order")
        expect(each["total_low_bytes"] <= total <= each["total_high_bytes"], f"rank {rank}: {total} is outside its band")
        terms = sum(term["value_bytes"] for term in each["terms"])
        expect(terms == total, f"rank {rank}: terms add up to {terms}, not to {total}")
        categories = each.get("peak_categories")
        if categories:
            expect(sum(categories.values()) == each["allocated_peak_bytes"],
                   f"rank {rank}: categories add up to {sum(categories.values())}")
    expect(verdict["peak_bytes"] == max(each["total_bytes"] for each in classes), "the verdict is not of the worst class")
    expect(not verdict["fits"] or verdict["headroom_bytes"] >= 0, "it fits with less than nothing left")


def expect_sound_time(estimate):
    time, throughput, training = estimate["time"], estimate["throughput"], estimate["plan"]["training"]
    iteration = time["iteration_seconds"]
    expect(iteration > 0, f"an iteration takes {iteration} s")
    parts = (time["compute_seconds"] + time["bubble_seconds"] + sum(time["exposed_communication_seconds"].values())
             + time["optimizer_seconds"] + time["data_loading_seconds"])
    expect(math.isclose(parts, iteration, rel_tol=ROUNDING), f"parts of {parts} s, an iteration of {iteration} s")
    expect(0 < throughput["mfu"] < 1, f"MFU is {throughput['mfu']}")
    expect(throughput["hfu"] >= throughput["mfu"] * (1 - ROUNDING), "HFU is below MFU")
    tokens = training["global_batch_size"] * training["sequence_length"] / iteration
    expect(math.isclose(tokens, throughput["tokens_per_second"], rel_tol=ROUNDING), f"{tokens} tokens a second")


def expect_sound(estimate):
    expect_sound_numbers(estimate)
    expect_sound_memory(estimate)
    expect_sound_time(estimate)


# --- Relations: each takes onerank, a plan and its estimate ---------------------------------------


def runs_are_equal(onerank, plan, estimate):
    expect_equal_document(onerank.estimate(plan), estimate, "the same plan again")


def check_says_the_same(onerank, plan, estimate):
    document, exit_code = onerank.check(plan)
    said = document.get("verdict", document)
    verdict = estimate["verdict"]
    expect_equal_document({key: said.get(key) for key in verdict}, verdict, "check and estimate")
    expect((exit_code == 0) == verdict["fits"], f"check ends with {exit_code}, fits is {verdict['fits']}")


def kept_profiles_say_the_same(onerank, plan, estimate):
    folder = onerank.folder / "profiles"
    expect_equal_document(onerank.estimate(plan, "--keep-profiles", folder), estimate, "with its profiles kept")
    expect_equal_document(onerank.estimate(plan, "--profiles", folder), estimate, "from its profiles")


def more_recompute_takes_no_more(onerank, plan, estimate):
    training = estimate["plan"]["training"]
    at = RECOMPUTE.index(training["recompute"])
    for more in RECOMPUTE[at + 1:]:
        if more == "selective" and training["framework"] == "torchtitan":
            continue  # beside what the backward of a rank's only layer needs it keeps other outputs
        other = onerank.changed(plan, training={"recompute": more})
        if other:
            expect(allocated(other) <= allocated(estimate), f"recompute {more} allocates {allocated(other)} bytes, "
                   f"{RECOMPUTE[at]} {allocated(estimate)}")


def larger_micro_batch_takes_no_less(onerank, plan, estimate):
    training = plan["training"]
    other = onerank.changed(plan, training={"micro_batch_size": 2 * training["micro_batch_size"],
                                            "global_batch_size": 2 * training["global_batch_size"]})
    expect(not other or allocated(other) >= allocated(estimate), "twice the micro-batch takes less memory")


def longer_sequence_takes_no_less(onerank, plan, estimate):
    other = onerank.changed(plan, training={"sequence_length": 2 * plan["training"]["sequence_length"]})
    expect(not other or allocated(other) >= allocated(estimate), "twice the sequence takes less memory")


def larger_batch_takes_longer_and_no_less(onerank, plan, estimate):
    other = onerank.changed(plan, training={"global_batch_size": 2 * plan["training"]["global_batch_size"]})
    if other:
        expect(allocated(other) >= allocated(estimate), "twice the global batch takes less memory")
        expect(other["time"]["iteration_seconds"] > estimate["time"]["iteration_seconds"],
               "twice the global batch takes no longer")


def every_micro_batch_run_allocates_the_same(onerank, plan, estimate):
    other = onerank.estimate(plan, "--all-micro-batches")
    expect(allocated(other) == allocated(estimate),
           f"all micro-batches allocate {allocated(other)} bytes, some {allocated(estimate)}")


def roofline_is_of_the_same_step(onerank, plan, estimate):
    roofline = onerank.json("roofline", plan)
    expect_sound_numbers(roofline, "roofline")
    expect(math.isclose(roofline["iteration_seconds"], estimate["time"]["iteration_seconds"], rel_tol=ROUNDING),
           f"the roofline's iteration takes {roofline['iteration_seconds']} s")


def overlap_is_never_longer(onerank, plan, estimate):
    """With the same calls: Megatron-LM cuts gradients into buckets only to overlap them, and smaller calls reach
    less of a link, which may cost more than overlap hides. Here it has one bucket; others always have many.

    Without interleaving, each of its stages asks for its parameters when its first input has come: stages then gather
    one after the other, which takes longer than all at the end of the step."""
    layout = plan["parallelism"]
    gathers_in_turn = layout.get("pipeline", 1) > 1 and layout.get("virtual_stages", 1) == 1
    buckets = {"bucket_elements": 10**12 if plan["training"]["framework"] == "megatron-lm" else 10**5}
    for flag, others in OVERLAPS.items():
        if flag == "overlap_param_gather" and gathers_in_turn:
            continue
        others = others | buckets
        both = [onerank.changed(plan, parallelism=others | {flag: is_on}) for is_on in (True, False)]
        if not all(both):
            continue
        seconds, without = (each["time"]["iteration_seconds"] for each in both)
        expect(seconds <= without * (1 + ISSUED_EARLIER), f"with {flag} an iteration takes {seconds} s, without {without} s")


RELATIONS = [runs_are_equal, check_says_the_same, kept_profiles_say_the_same, more_recompute_takes_no_more,
             larger_micro_batch_takes_no_less, longer_sequence_takes_no_less, larger_batch_takes_longer_and_no_less,
             every_micro_batch_run_allocates_the_same, roofline_is_of_the_same_step, overlap_is_never_longer]
