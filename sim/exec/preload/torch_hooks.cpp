// Functions that stand in front of torch's and libc's in a program under `onerank exec`.
//
// This library is preloaded, so the dynamic linker binds torch's libraries to the definitions here
// when one of them calls another (calls within a library are not seen). Each loads the recorder,
// which can link torch because torch is loaded by then. Without ONERANK_EXEC_RECORDER in the
// environment every call goes on to the real function.

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>

#include "sim/exec/preload/shared_descriptors.h"
#include "sim/exec/program/recorder_interface.h"
#include "sim/exec/program/variables.h"
#include "sim/tracking/views.h"

namespace {

constexpr int kMachineLacks = 3;  // estimator::ExitCode

const onerank_exec_recorder* load_recorder() {
  const char* path = std::getenv(sim::kExecRecorderVariable);
  if (path == nullptr) return nullptr;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  auto* get = library == nullptr ? nullptr
                                 : reinterpret_cast<decltype(&onerank_exec_get_recorder)>(
                                       dlsym(library, "onerank_exec_get_recorder"));
  if (get != nullptr) return get();
  std::fprintf(
      stderr,
      "error: this torch is not the one that Onerank was built for\n  %s\n"
      "  help: give the program's Python itself after `--`: stubs are made for its torch\n",
      dlerror());
  std::exit(kMachineLacks);
}

const onerank_exec_recorder* recorder() {
  static const onerank_exec_recorder* const recorder = load_recorder();
  return recorder;
}

/// True once recorder() was asked for; then a child that was forked must not load it anew.
bool recorder_is_loaded = false;

const onerank_exec_recorder* use_recorder() {
  const onerank_exec_recorder* used = recorder();
  recorder_is_loaded = used != nullptr;
  return used;
}

/// The definition in torch's own library, which is loaded.
template <class Function>
Function real(const char* library_name, const char* symbol) {
  void* library = dlopen(library_name, RTLD_LAZY | RTLD_NOLOAD);
  void* function = library == nullptr ? dlsym(RTLD_NEXT, symbol) : dlsym(library, symbol);
  if (function != nullptr) return reinterpret_cast<Function>(function);
  std::fprintf(stderr, "onerank: error: no %s in %s\n", symbol, library_name);
  std::abort();
}

}  // namespace

#define DEVICE_COUNT "_ZN3c104cuda28device_count_ensure_non_zeroEv"
#if _GLIBCXX_USE_CXX11_ABI
#define STRING_ARGUMENT "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
#else  // wheels before torch 2.7
#define STRING_ARGUMENT "Ss"
#endif
#define TCP_STORE "_ZN4c10d8TCPStoreC1E" STRING_ARGUMENT "RKNS_15TCPStoreOptionsE"
#define FILE_STORE "_ZN4c10d9FileStoreC1E" STRING_ARGUMENT "i"
#define GLOO                                                                  \
  "_ZN4c10d16ProcessGroupGlooC1ERKN3c1013intrusive_ptrINS_5StoreENS1_6detail" \
  "34intrusive_target_default_null_typeIS3_EEEEiiNS2_INS0_7OptionsENS5_ISA_EEEE"

#define IS_OBSERVED "_ZN3c1017ObservedOperators10isObservedERKNS_12OperatorNameE"

#define EXPORTED extern "C" __attribute__((visibility("default")))

/// c10::cuda::device_count_ensure_non_zero(): the first step of initialising CUDA.
EXPORTED signed char count_devices() asm(DEVICE_COUNT);
signed char count_devices() {
  static auto* const count = real<decltype(&count_devices)>("libc10_cuda.so", DEVICE_COUNT);
  if (const auto* used = use_recorder()) used->gpu_starts();
  return count();
}

/// c10d::TCPStore::TCPStore(std::string host, const TCPStoreOptions&)
EXPORTED void make_tcp_store(void* place, void* host, const void* options) asm(TCP_STORE);
void make_tcp_store(void* place, void* host, const void* options) {
  if (const auto* used = use_recorder()) return used->make_tcp_store(place, host, options);
  real<decltype(&make_tcp_store)>("libtorch_cpu.so", TCP_STORE)(place, host, options);
}

/// c10d::FileStore::FileStore(std::string path, int workers)
EXPORTED void make_file_store(void* place, void* path, int workers) asm(FILE_STORE);
void make_file_store(void* place, void* path, int workers) {
  if (const auto* used = use_recorder()) return used->make_file_store(place, path, workers);
  real<decltype(&make_file_store)>("libtorch_cpu.so", FILE_STORE)(place, path, workers);
}

/// c10d::ProcessGroupGloo::ProcessGroupGloo(const intrusive_ptr<Store>&, int rank, int size,
/// Options)
EXPORTED void make_gloo(void* place, const void* store, int rank, int size, void* options) asm(
    GLOO);
void make_gloo(void* place, const void* store, int rank, int size, void* options) {
  if (const auto* used = use_recorder()) return used->make_gloo(place, store, rank, size, options);
  real<decltype(&make_gloo)>("libtorch_cpu.so", GLOO)(place, store, rank, size, options);
}

/// The first member of c10::OperatorName.
struct OperatorName {
  std::string name;
};

/// The namespaces of all operators that torch itself does not observe. Other operators may be
/// registered before libtorch_cpu.so is initialised (libtorch_nvshmem.so's are, in torch 2.9): to
/// look for torch's function then would initialise it while its dispatcher is locked.
constexpr std::string_view kPartlyObserved[] = {"aten::", "profiler::"};

bool is_partly_observed(const std::string& name) {
  return std::any_of(std::begin(kPartlyObserved),
                     std::end(kPartlyObserved),
                     [&](std::string_view start) { return name.starts_with(start); });
}

/// c10::ObservedOperators::isObserved(const OperatorName&), asked once for each operator when it is
/// registered: whether profilers are told of its calls. Views are half of what a program calls, and
/// to tell the recorder, which has no use for them, took longer than they do.
EXPORTED bool is_observed(const OperatorName& op) asm(IS_OBSERVED);
bool is_observed(const OperatorName& op) {
  static const bool is_recorded = std::getenv(sim::kExecRecorderVariable) != nullptr;
  if (!is_partly_observed(op.name)) return true;
  static auto* const observed = real<decltype(&is_observed)>("libtorch_cpu.so", IS_OBSERVED);
  if (!is_recorded) return observed(op);
  return !sim::is_always_view(op.name) && observed(op);
}

namespace {

/// The value of "NAME=value" in an environment, or null.
const char* find_in(char* const environment[], std::string_view name) {
  for (char* const* entry = environment; entry != nullptr && *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, name.data(), name.size()) == 0 && (*entry)[name.size()] == '=') {
      return *entry + name.size() + 1;
    }
  }
  return nullptr;
}

/// Says that a launcher would have started this rank. Between fork and exec: no memory is
/// allocated.
void tell_skipped(const char* rank) {
  const char* folder = std::getenv(sim::kExecFolderVariable);
  char path[4096];
  if (folder == nullptr || std::strlen(rank) > 20 ||
      std::snprintf(path, sizeof path, "%s/%s%s", folder, sim::kSkippedPrefix, rank) >=
          int{sizeof path}) {
    return;
  }
  const int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file >= 0) close(file);
}

/// A launcher (torchrun, accelerate, deepspeed) starts a process for each rank of its node, and
/// only one of them is wanted: the others end as if they had done their work.
void skip_other_ranks(char* const environment[]) {
  const char* const wanted = std::getenv(sim::kExecWantedRankVariable);
  const char* const rank = find_in(environment, "RANK");
  if (wanted == nullptr || rank == nullptr || find_in(environment, "WORLD_SIZE") == nullptr) return;
  if (std::strcmp(wanted, rank) == 0) return;
  tell_skipped(rank);
  syscall(SYS_exit_group, 0);
}

}  // namespace

EXPORTED int execve(const char* path, char* const argv[], char* const envp[]) {
  static auto* const execute = reinterpret_cast<decltype(&execve)>(dlsym(RTLD_NEXT, "execve"));
  skip_other_ranks(envp);
  return execute(path, argv, envp);
}

/// torch's symmetric memory waits for what rank 0 of a group shares: a multicast object.
EXPORTED ssize_t recvmsg(int fd, msghdr* message, int flags) {
  static auto* const receive = reinterpret_cast<decltype(&recvmsg)>(dlsym(RTLD_NEXT, "recvmsg"));
  if (recorder_is_loaded && sim::waits_for_absent_rank(fd)) {
    const int descriptor = recorder()->multicast_of_others();
    sim::send_descriptor_to(fd, descriptor);
    close(descriptor);
  }
  return receive(fd, message, flags);
}

/// The end of a process that skips its exit handlers (os._exit in Python).
EXPORTED void _exit(int status) {
  if (recorder_is_loaded) recorder()->process_ends();
  static auto* const end = reinterpret_cast<void (*)(int)>(dlsym(RTLD_NEXT, "_exit"));
  end(status);
  __builtin_unreachable();
}
