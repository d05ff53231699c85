#!/usr/bin/env bash
# usage: launchers_test.sh CASE ONERANK SITE_PACKAGES
# `onerank verify` in a world that a real launcher started: Torchrun or Slurm. Exit code 77: skipped,
# with the reason.
set -euo pipefail

readonly onerank=$2 site=$3
folder=$(mktemp -d)
services=()
end() {
  for pid in "${services[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait || true
  rm -rf -- "$folder"
}
trap end EXIT

skip() { echo "skipped: $1"; exit 77; }
fail() {
  echo "failed: $1"
  tail -n 40 -- "$folder"/*.log "$folder"/output "$folder"/error 2>/dev/null || true
  exit 1
}

cat >"$folder/plan.json" <<'PLAN'
{"model": {"num_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "vocab_size": 64,
           "max_position_embeddings": 16, "hidden_dropout": 0, "attention_dropout": 0},
 "cluster": {"gpu": "a100"},
 "parallelism": {"tensor": 2, "pipeline": 2},
 "training": {"global_batch_size": 4, "sequence_length": 16, "dtype": "fp32",
              "attention": "unfused", "make_vocab_size_divisible_by": 1}}
PLAN

# expect_verdict STATUS LAUNCHER: all four ranks joined, one printed the table, the launcher's exit
# code is the verdict's.
expect_verdict() {
  (($1 == 0)) || fail "the exit code is $1"
  [[ $(grep -c "^equal: 4 real ranks over Gloo" "$folder/output") = 1 ]] || fail "no single table"
  local rank
  for rank in 0 1 2 3; do
    grep -q "rank $rank of 4 in the world that $2 started" "$folder/error" ||
      fail "rank $rank does not say what it found"
  done
  [[ -z $(find "$folder/tmp" -name 'onerank-*') ]] || fail "files are left"
}

Torchrun() {
  [[ -d $site/torch/distributed ]] || skip "no Python torch in $site"
  local preload=
  # Python's torch needs NVIDIA's libraries to be loaded, or the virtual GPU's in their place.
  if [[ -e ${onerank%/*}/virtual_gpu/preload ]]; then
    preload=$(sed "s|^|${onerank%/*}/virtual_gpu/lib/|" "${onerank%/*}/virtual_gpu/preload" |
      paste -sd:)
  fi
  mkdir "$folder/tmp"
  local status=0
  LD_PRELOAD=$preload PYTHONPATH=$site TMPDIR=$folder/tmp OMP_NUM_THREADS=1 \
    timeout 120 python3 -m torch.distributed.run --no-python --nproc-per-node 4 \
    --master-addr 127.0.0.1 --master-port "$((20000 + $$ % 10000))" \
    "$onerank" verify "$folder/plan.json" >"$folder/output" 2>"$folder/error" || status=$?
  expect_verdict "$status" torchrun
}

# Debian's Slurm, all of it in $folder and at two ports of its own, below those that Linux gives to
# other tests; no systemd.
start_slurm() {
  local host port=$((10000 + 2 * ($$ % 5000)))
  host=$(hostname -s)
  mkdir -p "$folder"/{state,spool,tmp,munge}
  # munge wants folders that only their owner can write to, all the way up: /tmp is not.
  local munge
  munge=$(mktemp -d /var/lib/onerank-munge-XXXXXX) || skip "no folder in /var/lib for munge"
  services_folder=$munge
  trap 'end; rm -rf -- "$services_folder"' EXIT
  head -c 1024 /dev/urandom >"$munge/key"
  chmod 700 "$munge" && chmod 600 "$munge/key"
  munged --foreground --force --key-file="$munge/key" --socket="$munge/socket" \
    --pid-file="$munge/pid" --log-file="$munge/log" --seed-file="$munge/seed" \
    >"$folder/munged.log" 2>&1 &
  services+=($!)
  cat >"$folder/slurm.conf" <<CONF
ClusterName=onerank
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$munge/socket
CryptoType=crypto/munge
SlurmctldPort=$port
SlurmdPort=$((port + 1))
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
ReturnToService=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=test Nodes=$host Default=YES State=UP OverSubscribe=FORCE:8
CONF
  export SLURM_CONF=$folder/slurm.conf
  slurmctld -D >"$folder/slurmctld.log" 2>&1 &
  services+=($!)
  slurmd -D >"$folder/slurmd.log" 2>&1 &
  services+=($!)
  for _ in $(seq 100); do
    if sinfo -h -o %t 2>/dev/null | grep -q idle; then return; fi
    sleep 0.2
  done
  fail "Slurm did not start"
}

Slurm() {
  local program
  for program in slurmctld slurmd srun munged; do
    command -v "$program" >/dev/null || skip "$program is not installed"
  done
  ((EUID == 0)) || skip "only root can start Slurm's daemons"
  start_slurm
  local status=0
  TMPDIR=$folder/tmp timeout 120 srun -n 4 --overcommit --export=ALL,MASTER_ADDR=127.0.0.1 \
    "$onerank" verify "$folder/plan.json" >"$folder/output" 2>"$folder/error" || status=$?
  expect_verdict "$status" srun
}

"$1"
