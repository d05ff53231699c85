# shellcheck shell=bash disable=SC2034  # the scripts that source this use the rest
# The set-up that scripts/quickstart and scripts/test share: system packages, a local .venv with
# torch, CMake, Ninja. Each step looks first and does nothing when nothing is missing (no network
# then), and can be repeated after it was interrupted. To be sourced.

readonly kDone=0 kFailed=1 kBadInput=2 kMachineLacks=3

readonly kTorchVersion=2.11.0
# What CMake, the build and the tests use; all of it is in Debian 12 and Ubuntu 24.04.
readonly kPackages=(
  binutils ccache cmake g++ ninja-build python3 python3-venv
  libcli11-dev libfmt-dev libgloo-dev libgmock-dev libgtest-dev libtomlplusplus-dev libyaml-cpp-dev nlohmann-json3-dev
)
# Slurm, for the tests that start ranks with it, clang-tidy, and the headers of Python, with which Triton compiles what
# launches its kernels; tests are skipped where these are missing.
readonly kTestPackages=(clang-tidy-14 munge python3-dev slurm-client slurmctld slurmd)
# CUDA headers of the version that the torch wheel is built with, and the formatter of the house style.
readonly kTools=(nvidia-cuda-runtime==13.0.96 nvidia-cuda-crt==13.0.88 clang-format==14.0.6)
# Real programs for the tests of `onerank exec`, and what they need; torch itself is there (--no-deps: pip
# would add the NVIDIA packages to it).
readonly kPrograms=(
  transformers==4.57.3 accelerate==1.12.0 huggingface-hub==0.36.0 tokenizers==0.22.1 safetensors==0.7.0
  nvidia-ml-py==13.615.71 triton==3.6.0 'numpy<3' regex packaging pyyaml psutil tqdm requests urllib3 idna certifi
  charset-normalizer
)
# What the torch wheel asks for besides the NVIDIA packages and Triton: gigabytes that only a GPU needs.
readonly kTorchPurePython=(
  filelock 'fsspec>=0.8.5' jinja2 markupsafe 'mpmath<1.4' 'networkx>=2.5.1' 'setuptools<82'
  'sympy>=1.13.3' 'typing-extensions>=4.10.0'
)

# Options (setup_option sets them) and folders.
root=$(cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
build=$root/build
torch=              # folder of an installed torch; empty: .venv gets one
jobs=               # empty: default_jobs
system_python=/usr/bin/python3  # makes .venv; the package python3-venv belongs to it
skip_packages=no
readonly root venv=$root/.venv

readonly kSetupHelp="\
  --torch DIR     use the torch installed in DIR (the folder torch, or the site-packages that holds it)
  --build DIR     build in DIR instead of build/
  --jobs N        compile N files at a time (default: by processors and memory)
  --no-packages   take the system packages as they are (for systems without apt)
  --help          show this help"

# die STATUS WHAT [DETAIL...]: ends the script with an error that says what, where and the way out.
die() {
  local status=$1 detail
  echo "error: $2" >&2
  for detail in "${@:3}"; do echo "  $detail" >&2; done
  exit "$status"
}

# setup_option ARG...: takes one option that both scripts have from the front of ARG..., and sets
# `taken` to the number of arguments it took (0: not one of these).
setup_option() {
  taken=2
  case $1 in
    --torch | --build | --jobs)
      [[ $# -ge 2 && -n $2 ]] || die $kBadInput "$1 needs a value" "help: ${0##*/} --help" ;;&
    --torch) torch=$2 ;;
    --build) build=$(realpath -m -- "$2") ;;
    --jobs)
      [[ $2 =~ ^[1-9][0-9]{0,3}$ ]] || die $kBadInput "--jobs $2 is not a number of jobs from 1 to 9999"
      jobs=$2 ;;
    --torch=* | --build=* | --jobs=*) setup_option "${1%%=*}" "${1#*=}"; taken=1 ;;
    --no-packages) skip_packages=yes taken=1 ;;
    *) taken=0 ;;
  esac
}

# --- Progress ---------------------------------------------------------------------------------

step_count=5  # of the script
step_number=0
step_line=
step_start=0

# step WHAT: begins the line of the next step, of `step_count`.
step() {
  ((++step_number))
  step_line="[$step_number/$step_count] $1 ..."
  step_start=$SECONDS
  printf '%s' "$step_line"
}

# step_done RESULT: ends the line, with the time if the step took any.
step_done() {
  local seconds=$((SECONDS - step_start))
  [[ ! -t 1 ]] || printf '\r\e[K%s' "$step_line"
  if ((seconds >= 2)); then printf ' %s (%d s)\n' "$1" "$seconds"; else printf ' %s\n' "$1"; fi
}

# watch_log FILE: shows how far a log is behind the step, until killed: its last line, or, where there is
# no terminal, each tenth of what Ninja ("[12/345] ...") or CTest ("12/345 Test ...") has done.
watch_log() {
  local last width tenths=0
  while sleep 1 && kill -0 $$; do
    if [[ -t 1 ]]; then
      last=$(tail -n 1 -- "$1" | tr -cd '[:print:]')
      width=$((${COLUMNS:-80} - ${#step_line} - 2))
      printf '\r\e[K%s %s' "$step_line" "${last:0:width > 0 ? width : 0}"
      continue
    fi
    last=$(tail -n 5 -- "$1" | grep -E '^ *\[?[0-9]+/[1-9][0-9]*[] ]' | tail -n 1) || true
    if [[ $last =~ ([0-9]+)/([0-9]+) ]]; then
      ((10 * BASH_REMATCH[1] / BASH_REMATCH[2] > tenths)) || continue
      tenths=$((10 * BASH_REMATCH[1] / BASH_REMATCH[2]))
      printf ' %d%%' $((10 * tenths))
    fi
  done
}

# logged NAME COMMAND...: runs a noisy command with its output in the log NAME; returns its status.
logged() {
  local status=0 watcher
  log=$build/logs/$1.log
  : >"$log"
  watch_log "$log" & watcher=$!
  "${@:2}" >"$log" 2>&1 </dev/null || status=$?
  { kill "$watcher" && wait "$watcher"; } 2>/dev/null || true
  return $status
}

# step_failed STATUS WHAT [DETAIL...]: ends the script, with the end of the step's log.
step_failed() {
  step_done FAILED
  tail -n 40 -- "$log" >&2
  die "$1" "$2" "log: $log" "${@:3}"
}

# --- Steps ------------------------------------------------------------------------------------

# missing_packages PACKAGE...: prints those that are not installed.
missing_packages() {
  local installed package
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null) || true
  for package; do
    grep -qxF "installed $package" <<<"$installed" || echo "$package"
  done
}

apt_install() {
  local as_root=(env DEBIAN_FRONTEND=noninteractive)
  ((EUID == 0)) || as_root=(sudo "${as_root[@]}")
  if compgen -G '/var/lib/dpkg/updates/[0-9]*' >/dev/null; then  # an installation was interrupted
    "${as_root[@]}" dpkg --configure -a || return
  fi
  "${as_root[@]}" apt-get update || echo "Going on with the package lists that are there."
  "${as_root[@]}" apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=300 "$@"
}

install_packages() {
  local missing
  step "system packages"
  if [[ $skip_packages = yes ]]; then step_done "taken as they are"; return; fi
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    step_done FAILED
    die $kMachineLacks "this is not a Debian or Ubuntu system: no apt-get" \
      "help: install what these packages hold, then use --no-packages: ${kPackages[*]}"
  fi
  mapfile -t missing < <(missing_packages "${kPackages[@]}")
  if ((${#missing[@]} == 0)); then step_done "already there"; return; fi
  if ((EUID != 0)) && ! { command -v sudo >/dev/null && sudo -v; }; then
    step_done FAILED
    die $kMachineLacks "system packages are missing, and only root can install them" \
      "missing: ${missing[*]}" \
      "help: as root, run: apt-get install --no-install-recommends ${missing[*]}"
  fi
  logged packages apt_install "${missing[@]}" ||
    step_failed $kMachineLacks "apt-get could not install ${missing[*]}"
  step_done "installed ${missing[*]}"
}

# install_test_packages: a step; what cannot be installed is left out.
install_test_packages() {
  local missing
  step "system packages of some tests"
  if [[ $skip_packages = yes ]]; then step_done "taken as they are"; return; fi
  mapfile -t missing < <(missing_packages "${kTestPackages[@]}")
  if ((${#missing[@]} == 0)); then
    step_done "already there"
  elif ((EUID != 0)) && ! { command -v sudo >/dev/null && sudo -nv; } 2>/dev/null; then
    step_done "left out: ${missing[*]} (only root can install them)"
  elif logged test-packages apt_install "${missing[@]}"; then
    step_done "installed ${missing[*]}"
  else
    step_done "left out: ${missing[*]} (see $log)"
  fi
}

has_nvidia_driver() { [[ -e /proc/driver/nvidia/version ]] || command -v nvidia-smi >/dev/null; }

# site_packages: prints the folder of .venv that packages are in, or nothing.
site_packages() {
  "$venv/bin/python" -I -c 'import sysconfig; print(sysconfig.get_path("purelib"))' 2>/dev/null ||
    true
}

# venv_has NAME FILE ARG...: whether `pip install ARG...` was done in .venv, to its end. The stamp
# is beside the packages, so that it goes away with them (and with the Python they are for).
venv_has() {
  site=$(site_packages)
  [[ -n $site && -e $site/$2 && $(cat -- "$site/onerank-$1.stamp" 2>/dev/null) = "${*:3}" ]]
}

# venv_pip NAME ARG...: does `pip install ARG...` in .venv, which it makes or repairs.
venv_pip() {
  local info
  if ! "$venv/bin/python" -I -m pip --version; then
    "$system_python" -I -m venv --clear -- "$venv" || return
  fi
  site=$(site_packages)
  [[ -n $site ]] || return
  rm -f -- "$site/onerank-$1.stamp"
  for info in "$site"/*.dist-info; do
    # Without RECORD its installation was interrupted, and pip would take it for complete.
    [[ -e $info/RECORD ]] || rm -rf -- "$info"
  done
  "$venv/bin/python" -I -m pip install --disable-pip-version-check "${@:2}" || return
  echo "${*:2}" >"$site/onerank-$1.stamp"
}

# venv_need NAME FILE ARG...: `pip install ARG...`, which brings FILE, unless it was done.
venv_need() {
  ! venv_has "$@" || return 0
  logged "pip-$1" venv_pip "$1" "${@:3}" ||
    step_failed $kMachineLacks "pip could not install ${*:3}"
  venv_has "$@" ||
    step_failed $kMachineLacks "pip left no $site/$2" "help: delete $venv and run again"
  venv_result=installed
}

# find_torch: makes `torch`, the value of --torch, the folder that holds lib/ and include/.
find_torch() {
  local given=$torch file
  [[ -n $given ]] || return 0
  [[ -e $torch/lib/libtorch_cpu.so || ! -d $torch/torch ]] || torch=$torch/torch
  for file in lib/libtorch_cpu.so lib/libc10.so include/c10/core/CachingDeviceAllocator.h; do
    [[ -e $torch/$file ]] || die $kMachineLacks "no torch that Onerank can use in --torch $given" \
      "missing: $torch/$file" \
      "help: give the folder that 'python3 -c \"import torch; print(*torch.__path__)\"' prints, of a" \
      "      torch like $kTorchVersion; or leave out --torch, and .venv gets one"
  done
  torch=$(cd -P -- "$torch" && pwd)
}

install_torch() {
  local wheel=(--no-deps "torch==$kTorchVersion" "${kTorchPurePython[@]}")
  venv_result="already there"
  if has_nvidia_driver; then wheel=("torch==$kTorchVersion"); fi
  if [[ -n $torch ]]; then
    step "torch in $torch"
  else
    step "torch $kTorchVersion"
    venv_need torch torch/lib/libtorch_cpu.so "${wheel[@]}"
    torch=$site/torch
  fi
  venv_need tools nvidia/cu13/include/cuda_runtime_api.h --no-deps "${kTools[@]}"
  step_done "$venv_result"
  if ! grep -qs "^cuda.* = '13\." "$torch/version.py"; then
    echo "note: this torch is not built for CUDA 13: the devices cuda and virtual may not work"
  fi
}

# install_programs: what the tests run with `onerank exec`. Without it they are skipped.
install_programs() {
  step "programs for tests"
  if [[ $torch != "$site/torch" ]]; then step_done "left out: torch is not in .venv"; return; fi
  venv_result="already there"
  venv_need programs transformers/__init__.py --no-deps "${kPrograms[@]}"
  step_done "$venv_result"
}

# configure NAME PRESET DIR OPTION...: the build folder DIR, by a preset of CMakePresets.json.
configure() {
  step "$1"
  logged "$1" cmake --preset "$2" -S "$root" -B "$3" "${@:4}" ||
    step_failed $kFailed "CMake could not configure $3"
  step_done "done"
}

# default_jobs [FOLDER]: one for each processor, with 1.5 GiB for each: torch's headers take 0.9 (measured). The
# control group FOLDER (/sys/fs/cgroup) has the limits of a container.
default_jobs() {
  local group=${1:-/sys/fs/cgroup} jobs kib limit quota period
  jobs=$(nproc)
  kib=$(sed -n 's/^MemTotal: *\([0-9]*\) kB$/\1/p' /proc/meminfo)
  limit=$(cat "$group/memory.max" 2>/dev/null || true)
  if [[ $limit =~ ^[0-9]+$ ]] && ((limit / 1024 < kib)); then kib=$((limit / 1024)); fi
  read -r quota period <<<"$(cat "$group/cpu.max" 2>/dev/null || true)" || true
  if [[ $quota =~ ^[0-9]+$ ]] && ((quota / period < jobs)); then jobs=$((quota / period)); fi
  ((kib / 1572864 >= jobs)) || jobs=$((kib / 1572864))
  echo $((jobs > 0 ? jobs : 1))
}

# build_tree NAME DIR [TARGET...]: builds TARGETs (default: all) of the build folder DIR.
build_tree() {
  step "$1"
  logged "$1" cmake --build "$2" --parallel "${jobs:-$(default_jobs)}" ${3:+--target "${@:3}"} ||
    step_failed $kFailed "the build failed"
  if grep -q '^ninja: no work to do' "$log"; then step_done "up to date"; else step_done "done"; fi
}

# beside STEP...: begins these steps, which need the network more than processors, beside those that follow, without
# a line of their own. After `wait` they are run as steps, and find it done, or do what failed again.
beside() {
  { for name; do "$name"; done; } >/dev/null 2>&1 </dev/null &
}

# setup TESTS TARGET [STEP...]: the four steps that make the build folder, for the tests that TESTS says (the
# value of ONERANK_TESTS), with the words of TARGET built. STEPs are begun beside the build. Sets `torch_options`,
# which every build folder is configured with.
setup() {
  find_torch
  if ! { mkdir -p -- "$build/logs" && [[ -w $build/logs ]]; } 2>/dev/null; then
    die $kMachineLacks "cannot write to $build" "help: --build DIR builds in another folder"
  fi
  install_packages
  install_torch
  (($# <= 2)) || beside "${@:3}"
  torch_options=(-DONERANK_TORCH_DIR="$torch" -DONERANK_CUDA_INCLUDE_DIR="$site/nvidia/cu13/include")
  configure configure release "$build" -DONERANK_TESTS="$1" "${torch_options[@]}"
  # shellcheck disable=SC2086  # words
  build_tree build "$build" $2
}
