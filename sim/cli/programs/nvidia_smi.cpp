#include "sim/cli/programs/nvidia_smi.h"

#include <fmt/format.h>

#include <algorithm>

#include "estimator/base/files.h"
#include "sim/virtual_gpu/driver_version.h"

namespace sim {
namespace {

namespace fs = std::filesystem;

/// Behind the facts, which are variables of the shell.
constexpr const char* kScript = R"sh(
refuse() {
  echo "nvidia-smi: $1: Onerank plays the GPU, and its nvidia-smi knows -L, and --query-gpu=FIELDS" \
    "with --format=csv, of these fields: index, count, name, uuid, driver_version, compute_cap," \
    "memory.total, memory.used, memory.free" >&2
  exit 2
}
uuid() { printf 'GPU-%02x000000-0000-0000-0000-000000000000' $(($1 + 1)); }
field() {
  case "$1" in
    index) printf '%s' "$2" ;;
    count) printf '%s' "$devices" ;;
    name | gpu_name) printf '%s' "$name" ;;
    uuid | gpu_uuid) uuid "$2" ;;
    driver_version) printf '%s' "$driver" ;;
    compute_cap) printf '%s' "$capability" ;;
    memory.total) printf '%s%s' "$total" "$unit" ;;
    memory.used) printf '%s%s' "$used" "$unit" ;;
    memory.free) printf '%s%s' $((total - used)) "$unit" ;;
    *) return 1 ;;
  esac
}
head_of() {
  case "$1" in memory.*) printf '%s [MiB]' "$1" ;; *) printf '%s' "$1" ;; esac
}
line() {
  separator=''
  for each in $fields; do
    printf '%s' "$separator"
    "$@" "$each" $device || return 1
    separator=', '
  done
  echo
}
query='' chosen='' shown=table unit=' MiB' has_head=yes
while [ $# -gt 0 ]; do
  case "$1" in
    -L | --list-gpus) shown=list ;;
    --query-gpu=*) shown=query query="${1#*=}" ;;
    --format=*) format="${1#*=}" ;;
    -i | --id) [ $# -gt 1 ] || refuse "$1"; chosen="$2"; shift ;;
    -i=* | --id=*) chosen="${1#*=}" ;;
    *) refuse "$1" ;;
  esac
  shift
done
for word in $(echo "${format:-}" | tr ',' ' '); do
  case "$word" in
    csv) ;;
    noheader) has_head='' ;;
    nounits) unit='' ;;
    *) refuse "--format=$format" ;;
  esac
done
fields=$(echo "$query" | tr ',' ' ')
for each in $fields; do field "$each" 0 > /dev/null || refuse "--query-gpu: $each"; done
[ $shown != query ] || [ -n "${format:-}" ] || refuse "--query-gpu without --format=csv"
[ $shown != query ] || [ -z "$has_head" ] || device='' line head_of
row() { [ $shown != table ] || printf '| %-76s |\n' "$1"; }
rule() { [ $shown != table ] || printf '+%078d+\n' 0 | tr 0 -; }
rule
row "NVIDIA-SMI $driver    Driver Version: $driver    CUDA Version: $cuda"
rule
device=0
while [ $device -lt "$devices" ]; do
  case ",${chosen:-$device}," in
    *",$device,"*)
      case $shown in
        list) echo "GPU $device: $name (UUID: $(uuid $device))" ;;
        query) line field ;;
        table) row "$device  $name    ${used}MiB / ${total}MiB" ;;
      esac
      ;;
  esac
  device=$((device + 1))
done
rule
)sh";

int64_t mebibytes(int64_t bytes) { return bytes >> 20; }

std::string facts_text(const ShownGpu& gpu) {
  return fmt::format(
      "name='{}' capability='{}' driver='{}' cuda='{}' devices={} total={} used={}\n",
      gpu.name,
      gpu.compute_capability,
      virtual_gpu::kDriverVersion,
      virtual_gpu::kDriversCuda,
      gpu.devices,
      mebibytes(gpu.memory_bytes),
      mebibytes(std::min(gpu.used_bytes, gpu.memory_bytes)));
}

}  // namespace

void write_nvidia_smi(const fs::path& folder, const ShownGpu& gpu) {
  fs::create_directories(folder);
  const fs::path path = folder / "nvidia-smi";
  estimator::write_file_whole(path.string(), "#!/bin/sh\n" + facts_text(gpu) + kScript);
  fs::permissions(path, fs::perms::owner_exec, fs::perm_options::add);
}

}  // namespace sim
