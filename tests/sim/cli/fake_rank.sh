#!/bin/sh
# Stands in for onerank-rank. FAKE_MODE says how it behaves; by default it writes profiles whose peak
# is FAKE_PEAK_BYTES, or FAKE_BYTES_PER_SAMPLE for each sample of a micro-batch, or FAKE_WHOLE_BYTES in
# plans with a global batch of FAKE_WHOLE_BATCH samples. FAKE_LOG gets a line for each rank. Of ranks of
# many plans, it waits without end after FAKE_HANGS_AFTER of them, when it has written FAKE_HANGS.

# Ends with the exit code $1 and the error of the fields $2, $3 and $4, in JSON.
fail_with() {
  previous=
  for word; do
    [ "$previous" != --errors ] || errors=$word
    previous=$word
  done
  printf '%s\n' "{\"schema_version\": 1, \"kind\": \"error\", \"exit_code\": $1,
    \"errors\": [{\"what\": \"$2\", \"where\": \"$3\", \"way_out\": \"$4\"}]}" >"$errors"
  exit "$1"
}

case $FAKE_MODE in
  bad-input)
    printf 'error: what is printed is not read\n' >&2
    fail_with 2 'what\nis wrong' 'where = 1\n  more' 'way out' "$@" ;;
  lacks-gpu) fail_with 3 'no GPU' device 'another device' "$@" ;;
  lacks-memory) printf 'error: this machine has no memory left\n' >&2; exit 3 ;;
  cannot-load)
    echo "onerank-rank: error while loading shared libraries: libtorch_cpu.so: cannot open" >&2
    exit 127 ;;
  descriptors) ls -l /proc/$$/fd | grep -c /dev/null >"$FAKE_MARKER"; exit 0 ;;
  other-code) echo "last words" >&2; exit 9 ;;
  killed) kill -KILL $$ ;;
  crashes) kill -SEGV $$ ;;
  no-profile) echo garbage; exit 0 ;;
  hangs)
    sleep 1000 &
    echo "$$ $!" >"$FAKE_MARKER.part" && mv "$FAKE_MARKER.part" "$FAKE_MARKER"
    wait ;;
  slow) sleep 1.3 ;;
  stops) kill -STOP $$ ;;
  stops-for-a-while)
    (sleep 1; kill -CONT $$) &
    kill -STOP $$ ;;
esac

while [ $# -gt 0 ]; do
  case $1 in
    --calibrate) calibration=$2; shift ;;
    --plan) plan=$(cat "$2"); shift ;;
    --work) work=$2; shift ;;
    --output-dir) folder=$2; shift ;;
    --ranks) ranks=$2; shift ;;
    --device) device=$2; shift ;;
    --all-micro-batches) all=1 ;;
    --peak-snapshot) peak_snapshot=1 ;;
    --memory-history) memory_history=1 ;;
    --memory-timeline) timeline=1 ;;
    --jobs) jobs=$2; shift ;;
  esac
  shift
done
if [ -n "$FAKE_MARKER" ]; then
  printf 'ranks=%s device=%s all=%s jobs=%s allocator=%s newer=%s\ngpu=%s\npreload=%s\n' "$ranks" "$device" \
    "$all" "$jobs" "$PYTORCH_CUDA_ALLOC_CONF" "$PYTORCH_ALLOC_CONF" "$ONERANK_VIRTUAL_GPU" "$LD_PRELOAD" \
    >"$FAKE_MARKER"
fi

tool='{"name": "onerank", "version": "fake", "torch": "none"}'
if [ -n "$calibration" ]; then
  cat >"$calibration" <<CALIBRATION
{"schema_version": 1, "kind": "calibration", "tool": $tool,
 "device": {"kind": "$device", "gpu": "", "name": "Fake GPU", "total_bytes": 85029027840, "allocator": ""},
 "driver": "580.1", "date": "2026-11-21",
 "matmul": [{"dtype": "bf16", "m": 1000, "n": 1000, "k": 1000, "accumulates": false, "seconds": 1e-5}],
 "attention": [], "streams": [], "optimizer": [],
 "launch": {"kernel_seconds": 2e-6, "host_seconds": 5e-6}, "note": ""}
CALIBRATION
  exit 0
fi

# The whole number at the key $2 of the plan $1.
number_in() {
  echo "$1" | sed "s/.*\"$2\":\([0-9]*\).*/\1/"
}

# The ranks $3 of the plan $2, with their files in the folder $1.
write_profiles() {
folder=$1 plan=$2 ranks=$3
peak=${FAKE_PEAK_BYTES:-1073741824}
if [ -n "$FAKE_BYTES_PER_SAMPLE" ]; then
  peak=$((FAKE_BYTES_PER_SAMPLE * $(number_in "$plan" micro_batch_size)))
fi
if [ "$(number_in "$plan" global_batch_size)" = "$FAKE_WHOLE_BATCH" ]; then peak=$FAKE_WHOLE_BYTES; fi
world=$(($(number_in "$plan" nodes) * $(number_in "$plan" gpus_per_node)))
reading="{\"allocated_bytes\": $peak, \"reserved_bytes\": $peak}"
total=85029027840
lifted=false
[ "$peak" -le $total ] || lifted=true
pipeline=$(number_in "$plan" pipeline)
for rank in $ranks; do
  stage=$((rank * pipeline / world))
  file=$(printf 'rank-%05d.json' "$rank")
  cat >"$folder/$file" <<PROFILE
{"schema_version": 1, "kind": "rank_profile", "tool": $tool, "plan": $plan, "rank": $rank, "world_size": $world,
 "coordinate": {"tp": 0, "cp": 0, "ep": 0, "dp": 0, "pp": $stage},
 "device": {"kind": "$device", "gpu": "", "name": "Fake GPU", "total_bytes": $total, "allocator": ""},
 "parameters": {"count": 1000, "bytes": 2000, "tensors": []},
 "model_state": {"parameter_bytes": 2000, "gradient_bytes": 4000, "master_weight_bytes": 4000,
                 "optimizer_state_bytes": 8000, "parameter_padding_bytes": 0, "gradient_padding_bytes": 0,
                 "gradient_stand_in_bytes": 0, "step_scalar_bytes": 0},
 "micro_batches": {"total": 4, "executed": 3, "most_in_flight": 1, "activation_bytes": 1000},
 "limit_lifted": $lifted,
 "phases": [{"name": "iteration_1.forward_backward",
             "before": {"allocated_bytes": 1048576, "reserved_bytes": 2097152},
             "after": {"allocated_bytes": 3145728, "reserved_bytes": 4194304}, "peak": $reading, "seconds": 0.5}],
 "peak": {"allocated_bytes": $peak, "reserved_bytes": $peak, "phase": "iteration_1.forward_backward",
          "module": "layers.0.mlp", "operator": "aten::mm"},
 "allocator": {"requested_peak_bytes": 0, "active_peak_bytes": 0, "inactive_split_peak_bytes": 0,
               "segments_peak": 0, "device_allocations": 0, "retries": 0},
 "modules": [], "collectives": [],
 "operators": [{"name": "aten::mm", "shapes": [[1000, 1000], [1000, 1000]], "dtype": "BFloat16",
                "other_dtype": "", "strided": false, "misaligned": false, "chunk": -1, "flops": 2e9,
                "bytes": 6e6, "phase": "forward_backward", "direction": "forward", "module_kind": "mlp",
                "count": 4, "executed_count": 3}]}
PROFILE
  stem=$folder/${file%.json}
  [ -z "$peak_snapshot" ] || echo "--peak-snapshot of rank $rank" >"$stem.peak.jsonl"
  [ -z "$memory_history" ] || echo "--memory-history of rank $rank" >"$stem.history.pickle"
  [ -z "$timeline" ] || echo "--memory-timeline of rank $rank" >"$stem.timeline.csv"
  [ -z "$FAKE_LOG" ] || echo "rank $rank" >>"$FAKE_LOG"
  echo "{\"plan\": ${number:-0}, \"rank\": $rank, \"file\": \"$file\"}"
done
}

if [ -n "$work" ]; then
  plans=0
  while read -r number its_ranks; do
    if [ "$plans" = "$FAKE_HANGS_AFTER" ]; then
      sleep 1000 &
      echo "$$ $!" >"$FAKE_HANGS"
      wait
    fi
    plans=$((plans + 1))
    of_plan=$(dirname "$work")/$number
    write_profiles "$of_plan" "$(cat "$of_plan/plan.json")" "$its_ranks"
  done <"$work"
else
  write_profiles "$folder" "$plan" "$(echo "$ranks" | tr , ' ')"
fi
