#include "sim/exec/program_end.h"

#include <dlfcn.h>
#include <unistd.h>

namespace sim {
namespace {

/// Of Python's stable C interface, declared here since Python is found at run time or not at all.
using PyObject = void;
using AddPendingCall = int (*)(int (*)(void*), void*);
using SetNone = void (*)(PyObject*);

template <class Symbol>
Symbol find(const char* name) {
  return reinterpret_cast<Symbol>(dlsym(RTLD_DEFAULT, name));
}

/// Runs in Python's main thread, which holds the interpreter; -1 says that an exception is set.
int raise_system_exit(void*) {
  const auto set_none = find<SetNone>("PyErr_SetNone");
  auto* const system_exit = find<PyObject**>("PyExc_SystemExit");
  if (set_none == nullptr || system_exit == nullptr) return 0;
  set_none(*system_exit);
  return -1;
}

}  // namespace

void end_program() {
  const auto add_pending_call = find<AddPendingCall>("Py_AddPendingCall");
  if (add_pending_call == nullptr) _exit(0);
  add_pending_call(raise_system_exit, nullptr);
}

}  // namespace sim
