#!/bin/sh
# Stands in for onerank-rank. FAKE_MODE says how it behaves; by default it writes profiles whose peak
# is FAKE_PEAK_BYTES and whose pipeline stage is the rank's place in the list.
case $FAKE_MODE in
  bad-input)
    printf 'warning: not for the user\nerror: what\n  where = 1\n  more\n  help: way out\n' >&2
    exit 2 ;;
  lacks-gpu) printf 'error: no GPU\n  device\n  help: another device\n' >&2; exit 3 ;;
  cannot-load)
    echo "onerank-rank: error while loading shared libraries: libtorch_cpu.so: cannot open" >&2
    exit 127 ;;
  other-code) echo "last words" >&2; exit 9 ;;
  killed) kill -KILL $$ ;;
  crashes) kill -SEGV $$ ;;
  no-profile) echo garbage; exit 0 ;;
  hangs)
    sleep 1000 &
    echo "$$ $!" >"$FAKE_MARKER.part" && mv "$FAKE_MARKER.part" "$FAKE_MARKER"
    wait ;;
  slow) sleep 1.3 ;;
esac

while [ $# -gt 0 ]; do
  case $1 in
    --calibrate) calibration=$2; shift ;;
    --plan) plan=$(cat "$2"); shift ;;
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

if [ -n "$calibration" ]; then
  cat >"$calibration" <<CALIBRATION
{"schema_version": 1, "kind": "calibration", "device": {"kind": "$device", "name": "Fake GPU"},
 "driver": "580.1", "date": "2026-11-21",
 "matmul": [{"dtype": "bf16", "m": 1000, "n": 1000, "k": 1000, "seconds": 1e-5}],
 "launch": {"kernel_seconds": 2e-6, "host_seconds": 5e-6}}
CALIBRATION
  exit 0
fi

peak=${FAKE_PEAK_BYTES:-1073741824}
reading="{\"allocated_bytes\": $peak, \"reserved_bytes\": $peak}"
stage=0
for rank in $(echo "$ranks" | tr , ' '); do
  file=$(printf 'rank-%05d.json' "$rank")
  cat >"$folder/$file" <<PROFILE
{"schema_version": 1, "kind": "rank_profile", "plan": $plan, "rank": $rank, "world_size": 8,
 "coordinate": {"tp": 0, "cp": 0, "ep": 0, "dp": 0, "pp": $stage},
 "device": {"kind": "$device", "name": "Fake GPU", "total_bytes": 85029027840},
 "parameters": {"count": 1000, "bytes": 2000},
 "micro_batches": {"total": 4, "executed": 3},
 "phases": [{"name": "iteration_1.forward_backward", "before": {"allocated_bytes": 1048576},
             "after": {"allocated_bytes": 3145728}, "peak": $reading, "seconds": 0.5}],
 "peak": {"allocated_bytes": $peak, "reserved_bytes": $peak, "phase": "iteration_1.forward_backward",
          "module": "layers.0.mlp", "operator": "aten::mm"}}
PROFILE
  stem=$folder/${file%.json}
  [ -z "$peak_snapshot" ] || echo "--peak-snapshot of rank $rank" >"$stem.peak.jsonl"
  [ -z "$memory_history" ] || echo "--memory-history of rank $rank" >"$stem.history.pickle"
  [ -z "$timeline" ] || echo "--memory-timeline of rank $rank" >"$stem.timeline.csv"
  echo "{\"rank\": $rank, \"file\": \"$file\"}"
  stage=$((stage + 1))
done
