#!/usr/bin/env bash
# shellcheck disable=SC2016  # the bodies of fakes are expanded when they run
# usage: scripts_test.sh CASE
# Runs one case (a function below) against a copy of the scripts in a temporary folder, where pip,
# apt-get, dpkg-query and sudo are fakes that write down how they were called.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
tree=$(mktemp -d)/"one rank"  # a path with a space
trap 'rm -rf -- "$(dirname -- "$tree")"' EXIT
mkdir -p "$tree/bin"
cp -r "$here/../../scripts" "$tree/"
calls=$tree/calls
unset ONERANK_TORCH_DIR
: >"$calls"

# fake NAME BODY: puts the script BODY in front of the command NAME.
fake() {
  printf '#!/bin/bash\necho "%s $*" >>"%s"\n%s\n' "$1" "$calls" "$2" >"$tree/bin/$1"
  chmod +x "$tree/bin/$1"
}

# run COMMAND...: sets `status` and `output` (both streams), as a user who is not root.
run() {
  local as_user=()
  if ((EUID == 0)); then
    chmod -R a+rwX "$(dirname -- "$tree")"
    as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  fi
  status=0
  output=$(PATH="$tree/bin:$PATH" "${as_user[@]}" "$@" 2>&1 </dev/null) || status=$?
}

# in_setup CODE: runs CODE after scripts/lib/setup.sh.
in_setup() { run bash -euc "source '$tree/scripts/lib/setup.sh'; mkdir -p \"\$build/logs\"; $1"; }

fail() {
  printf 'failed: %s\nstatus: %s\noutput:\n%s\ncalls:\n%s\n' "$1" "$status" "$output" "$(cat "$calls")"
  exit 1
}
expect_status() { ((status == $1)) || fail "status is $1"; }
expect_output() { [[ $output = *"$1"* ]] || fail "output has: $1"; }
expect_last_line() { [[ ${output##*$'\n'} = "$1" ]] || fail "last line is: $1"; }
expect_calls() { [[ $(grep "^$1" "$calls") = "$2" ]] || fail "calls of $1 are: $2"; }

# --- Options ------------------------------------------------------------------------------------

UnknownOptionExitsWith2() {
  for script in quickstart test; do
    run "$tree/scripts/$script" --bogus
    expect_status 2
    expect_output "unknown argument --bogus"
  done
}

JobsAreThoseOfTheContainer() {
  mkdir "$tree/group"
  fake nproc 'echo 64'
  printf '%s\n' $((4 << 30)) >"$tree/group/memory.max"
  printf '300000 100000\n' >"$tree/group/cpu.max"
  in_setup "default_jobs '$tree/group'"
  expect_last_line 2  # of 1.5 GiB each
  printf 'max\n' >"$tree/group/memory.max"
  fake sed 'echo 999999999'  # memory of the machine
  in_setup "default_jobs '$tree/group'"
  expect_last_line 3
  in_setup "default_jobs '$tree/no group'"
  expect_last_line 64
}

JobsThatAreNotANumberExitWith2() {
  for jobs in 0 -1 two 1e3 ""; do
    run "$tree/scripts/quickstart" --jobs "$jobs"
    expect_status 2
    expect_output "error: --jobs"
  done
}

MissingTorchExitsWith3AndMakesNothing() {
  run "$tree/scripts/quickstart" --torch /nonexistent
  expect_status 3
  expect_output "missing: /nonexistent/lib/libtorch_cpu.so"
  [[ ! -e $tree/build && ! -e $tree/.venv ]] || fail "nothing was made"
}

TorchMayBeItsFolderOrItsSitePackages() {
  local torch=$tree/packages/torch
  mkdir -p "$torch/lib" "$torch/include/c10/core"
  touch "$torch"/lib/lib{torch_cpu,c10}.so "$torch/include/c10/core/CachingDeviceAllocator.h"
  for given in "$torch" "$tree/packages" "$tree/packages/../packages/torch/"; do
    in_setup "setup_option --torch '$given'; find_torch; echo \$torch"
    expect_status 0
    expect_last_line "$torch"
  done
}

# --- Packages -----------------------------------------------------------------------------------

# Everything is installed but cmake, which apt-get has left half-way, and ccache.
fake_packages() {
  fake dpkg-query 'echo "half-configured cmake"
    for package in "${@:4}"; do [[ $package = c[cm]a* ]] || echo "installed $package"; done; exit 1'
  fake apt-get ''
}

OnlyMissingPackagesAreInstalledThroughSudo() {
  fake_packages
  fake sudo '[[ $1 = -v ]] || "$@"'
  in_setup install_packages
  expect_status 0
  expect_output "installed ccache cmake"
  expect_calls apt-get "apt-get update
apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=300 ccache cmake"
  expect_calls "sudo env" "sudo env DEBIAN_FRONTEND=noninteractive apt-get update
sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=300 ccache cmake"
}

PackagesWithoutRootOrSudoExitWith3() {
  fake_packages
  fake sudo 'exit 1'
  in_setup install_packages
  expect_status 3
  expect_output "missing: ccache cmake"
  expect_calls apt-get ""
}

# --- .venv --------------------------------------------------------------------------------------

# A .venv whose pip installs the file `header`, or fails if there is a file `broken`.
fake_venv() {
  local site=$tree/.venv/site
  mkdir -p "$site" "$tree/.venv/bin"
  fake python "case \"\$*\" in
    *sysconfig*) echo '$site' ;;
    *install*) [[ ! -e '$tree/broken' ]] && touch '$site/header' ;;
  esac"
  mv "$tree/bin/python" "$tree/.venv/bin/python"
}

PipRunsAgainAfterAFailureAndNotAfterASuccess() {
  fake_venv
  touch "$tree/broken" "$tree/.venv/site/header"
  in_setup "step pip; venv_need tools header a==1"
  expect_status 3
  expect_output "pip could not install a==1"
  rm "$tree/broken"
  in_setup "step pip; venv_need tools header a==1"
  in_setup "step pip; venv_need tools header a==1"
  expect_status 0
  local install="python -I -m pip install --disable-pip-version-check a==1"
  expect_calls "python -I -m pip install" "$install
$install"
}

PipRunsAgainForOtherRequirements() {
  fake_venv
  in_setup "step pip; venv_need tools header a==1; venv_need tools header a==2; venv_need tools header a==2"
  expect_status 0
  expect_calls "python -I -m pip install" "python -I -m pip install --disable-pip-version-check a==1
python -I -m pip install --disable-pip-version-check a==2"
}

PipRunsAgainAfterAFailedChange() {
  fake_venv
  in_setup "step pip; venv_need tools header a==1"
  touch "$tree/broken"
  in_setup "step pip; venv_need tools header a==2"
  expect_status 3
  rm "$tree/broken"
  : >"$calls"
  in_setup "step pip; venv_need tools header a==1"
  expect_status 0
  expect_calls "python -I -m pip install" "python -I -m pip install --disable-pip-version-check a==1"
}

HalfInstalledPackagesAreForgotten() {
  fake_venv
  mkdir "$tree"/.venv/site/{half,whole}-1.dist-info
  touch "$tree"/.venv/site/{half,whole}-1.dist-info/METADATA "$tree/.venv/site/whole-1.dist-info/RECORD"
  in_setup "step pip; venv_need tools header half==1; cd '$tree/.venv/site'; echo; echo *.dist-info"
  expect_status 0
  expect_last_line whole-1.dist-info
}

# --- torch of a build ----------------------------------------------------------------------------

# make_torch FOLDER VERSION: what is looked at of a torch.
make_torch() {
  mkdir -p "$1/lib" "$1/include/c10/core"
  touch "$1"/lib/lib{torch_cpu,c10}.so "$1/include/c10/core/CachingDeviceAllocator.h"
  printf "__version__ = '%s'\ncuda: Optional[str] = '13.0'\n" "$2" >"$1/version.py"
}

# fake_build_python VERSION: a Python that has this torch, beside a .venv whose pip installs nothing new.
fake_build_python() {
  make_torch "$tree/own/torch" "$1"
  fake python3 "echo '$tree/own/torch'"
  fake_venv
  make_torch "$tree/.venv/site/torch" new
  mkdir -p "$tree/.venv/site/nvidia/cu13/include"
  touch "$tree/.venv/site/nvidia/cu13/include/cuda_runtime_api.h"
}

AWheelIsBuiltForTheTorchOfItsPythonIfThatFits() {
  fake_build_python "$(sed -n 's/^readonly kTorchVersion=//p' "$tree/scripts/lib/setup.sh")+cu130"
  run "$tree/scripts/lib/find-torch" "$tree/bin/python3" "$tree/build"
  expect_status 0
  expect_output "$tree/own/torch"$'\n'"$tree/.venv/site/nvidia/cu13/include"
  expect_calls "python -I -m pip install .*torch==" ""
}

AWheelGetsATorchIfThatOfItsPythonDoesNotFit() {
  fake_build_python 1.0.0+cu130
  fake nvidia-smi ''  # a build needs no more packages where there is a GPU
  run "$tree/scripts/lib/find-torch" "$tree/bin/python3" "$tree/build"
  expect_status 0
  expect_output "$tree/.venv/site/torch"$'\n'"$tree/.venv/site/nvidia/cu13/include"
  grep -q "^python -I -m pip install .*--no-deps torch==" "$calls" || fail "torch was installed alone"
}

# configured OPTION...: what a build that has only find_torch.cmake finds.
configured() {
  printf '%s\n' 'cmake_minimum_required(VERSION 3.22)' 'project(tiny LANGUAGES NONE)' \
    'include(scripts/cmake/find_torch.cmake)' \
    'message(STATUS "torch: ${ONERANK_TORCH_DIR}; headers: ${ONERANK_CUDA_INCLUDE_DIR}.")' >"$tree/CMakeLists.txt"
  run cmake -S "$tree" -B "$tree/build" "$@"
  expect_status 0
}

make_packages() {
  make_torch "$1/torch" new
  mkdir -p "$1/nvidia/cu13/include/crt"
  touch "$1/nvidia/cu13/include/crt/host_defines.h"
}

ABuildFindsWhatQuickstartInstalled() {
  local site=$tree/.venv/lib/python3.11/site-packages
  configured
  expect_output "torch: ; headers: ."
  make_packages "$site"
  configured
  expect_output "torch: $site/torch; headers: $site/nvidia/cu13/include."
}

ABuildTakesTheTorchThatAVariableNames() {
  make_packages "$tree/.venv/lib/python3.11/site-packages"
  make_packages "$tree/other"
  export ONERANK_TORCH_DIR=$tree/other/torch
  configured
  expect_output "torch: $tree/other/torch; headers: $tree/other/nvidia/cu13/include."
}

ABuildWithoutTorchAsksOnlyWhereItIsToldTo() {
  fake python3 ''
  printf '#!/bin/sh\necho "%s/own/torch"; echo "%s/own/headers"\n' "$tree" "$tree" >"$tree/scripts/lib/find-torch"
  make_torch "$tree/own/torch" new
  mkdir "$tree/own/headers"
  touch "$tree/own/headers/cuda_runtime_api.h"
  configured
  expect_output "torch: ; headers: ."
  configured -DONERANK_FETCH_TORCH=ON -DPython3_EXECUTABLE=/usr/bin/python3
  expect_output "torch: $tree/own/torch; headers: $tree/own/headers."
}

StepsThatWereBegunBesideOthersAreDoneOnce() {
  fake_venv
  in_setup "tools() { step tools; venv_need tools header a==1; step_done \"\$venv_result\"; }
    venv_result=there; beside tools; wait; tools"
  expect_status 0
  expect_last_line "[1/5] tools ... there"
  expect_calls "python -I -m pip install" "python -I -m pip install --disable-pip-version-check a==1"
}

AFailureBesideOtherStepsIsToldByTheStep() {
  fake_venv
  touch "$tree/broken"
  in_setup "tools() { step tools; venv_need tools header a==1; }; beside tools; wait; echo so far; tools"
  expect_status 3
  expect_output "so far"$'\n'"[1/5] tools ... FAILED"
}

# --- Steps and reports --------------------------------------------------------------------------

FailedStepShowsItsLog() {
  fake cmake 'echo "what went wrong" >&2; exit 7'
  in_setup "configure configure release '$tree/b'"
  expect_status 1
  expect_output "[1/5] configure ... FAILED"
  expect_output "what went wrong"
  expect_output "log: $tree/build/logs/configure.log"
}

count() { run /usr/bin/python3 "$tree/scripts/lib/count_tests.py" "$@"; }

ReportsOfAllBuildsAreCounted() {
  cp "$here"/data/*.xml "$tree/"
  count "$tree/mixed.xml" "$tree/passed.xml"
  expect_status 1
  expect_last_line "3 passed, 3 failed, 3 skipped"
  expect_output "--- mixed: Bad.Expectation failed"$'\n'"expected 1 < 0"
}

CasesOfAGtestProgramAreCounted() {
  cp "$here"/data/*.xml "$tree/"
  count "$tree/suites.xml"
  expect_status 1
  expect_last_line "5 passed, 2 failed, 1 skipped"
  expect_output "--- suites: Broken failed"$'\n'"[ RUN      ] Broken.First"
}

ReportsWithoutFailuresExitWith0() {
  cp "$here"/data/*.xml "$tree/"
  count "$tree/passed.xml" "$tree/empty.xml"
  expect_status 0
  expect_last_line "1 passed, 0 failed"
}

ReportsWithoutTestsExitWith1() {
  cp "$here"/data/*.xml "$tree/"
  count "$tree/empty.xml"
  expect_status 1
  expect_output "error: no tests ran"
  expect_last_line "0 passed, 0 failed"
}

"$1"
