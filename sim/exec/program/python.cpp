#include "sim/exec/program/python.h"

#include <c10/util/Backtrace.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <memory>
#include <sstream>
#include <string_view>

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

/// Has Python's main thread, which then holds the interpreter, call `function`, which gives -1 when
/// it has set an exception. False without Python.
bool call_soon(int (*function)(void*), void* argument) {
  const auto add_pending_call = find<AddPendingCall>("Py_AddPendingCall");
  return add_pending_call != nullptr && add_pending_call(function, argument) == 0;
}

int raise_system_exit(void*) {
  const auto set_none = find<SetNone>("PyErr_SetNone");
  auto* const system_exit = find<PyObject**>("PyExc_SystemExit");
  if (set_none == nullptr || system_exit == nullptr) return 0;
  set_none(*system_exit);
  return -1;
}

/// How Python's grammar reads a text: Py_eval_input, Py_file_input.
enum class Grammar : int { kExpression = 258, kStatements = 257 };

/// What the text gives, to be released; null if it has set an exception, or without Python. Its
/// names are its own: those of the program may hide Python's (nanoGPT has a variable `compile`).
/// The thread must hold the interpreter's lock.
PyObject* run_text(const std::string& text, Grammar grammar) {
  const auto run = find<PyObject* (*)(const char*, int, PyObject*, PyObject*)>("PyRun_String");
  const auto make_names = find<PyObject* (*)()>("PyDict_New");
  const auto release = find<void (*)(PyObject*)>("Py_DecRef");
  if (!run || !make_names || !release) return nullptr;
  PyObject* const names = make_names();
  PyObject* const value = run(text.c_str(), static_cast<int>(grammar), names, names);
  release(names);
  return value;
}

/// Prints an error of the script's and goes on: the program does not depend on it.
int run_script(void* source) {
  const std::unique_ptr<std::string> text(static_cast<std::string*>(source));
  const auto print_error = find<void (*)()>("PyErr_Print");
  const auto release = find<void (*)(PyObject*)>("Py_DecRef");
  if (!print_error || !release) return 0;
  PyObject* const none = run_text(*text, Grammar::kStatements);
  if (none == nullptr) {
    print_error();
  } else {
    release(none);
  }
  return 0;
}

/// As a literal of Python.
std::string quoted(const std::string& text) {
  std::string literal = "'";
  for (const char c : text) {
    if (c == '\\' || c == '\'') literal += '\\';
    literal += c;
  }
  return literal + "'";
}

/// The text that an expression gives, or "" if it fails. The thread must hold the interpreter's
/// lock.
std::string evaluate(const std::string& expression) {
  const auto utf8 = find<const char* (*)(PyObject*)>("PyUnicode_AsUTF8");
  const auto clear_error = find<void (*)()>("PyErr_Clear");
  const auto release = find<void (*)(PyObject*)>("Py_DecRef");
  if (!utf8 || !clear_error || !release) return "";
  PyObject* const value = run_text(expression, Grammar::kExpression);
  const char* const text = value == nullptr ? nullptr : utf8(value);
  std::string copy = text == nullptr ? "" : text;
  if (text == nullptr) clear_error();
  if (value != nullptr) release(value);
  return copy;
}

/// What reads frames, all of it in every Python since 3.9. Objects that are returned are released
/// after use, but for the running frame.
struct FrameReader {
  int (*lock)() = find<decltype(lock)>("PyGILState_Ensure");
  void (*unlock)(int) = find<decltype(unlock)>("PyGILState_Release");
  PyObject* (*running_frame)() = find<decltype(running_frame)>("PyEval_GetFrame");
  PyObject* (*caller)(PyObject*) = find<decltype(caller)>("PyFrame_GetBack");
  PyObject* (*code)(PyObject*) = find<decltype(code)>("PyFrame_GetCode");
  int (*line)(PyObject*) = find<decltype(line)>("PyFrame_GetLineNumber");
  PyObject* (*attribute)(PyObject*,
                         const char*) = find<decltype(attribute)>("PyObject_GetAttrString");
  const char* (*utf8)(PyObject*) = find<decltype(utf8)>("PyUnicode_AsUTF8");
  void (*clear_error)() = find<decltype(clear_error)>("PyErr_Clear");
  void (*release)(PyObject*) = find<decltype(release)>("Py_DecRef");

  bool is_complete() const {
    return lock && unlock && running_frame && caller && code && line && attribute && utf8 &&
           clear_error && release;
  }

  std::string text(PyObject* object, const char* name) const {
    PyObject* const value = attribute(object, name);
    const char* const text = value == nullptr ? nullptr : utf8(value);
    std::string copy = text == nullptr ? "" : text;
    if (text == nullptr) clear_error();  // it is left out
    if (value != nullptr) release(value);
    return copy;
  }

  PythonFrame read(PyObject* frame) const {
    PyObject* const its_code = code(frame);
    PythonFrame result = {.file = text(its_code, "co_filename"),
                          .function = text(its_code, "co_name"),
                          .line = line(frame)};
    release(its_code);
    return result;
  }
};

}  // namespace

std::vector<PythonFrame> python_frames() {
  const FrameReader reader;
  if (!reader.is_complete()) return {};
  std::vector<PythonFrame> frames;
  const int state = reader.lock();
  PyObject* const innermost = reader.running_frame();
  for (PyObject* frame = innermost; frame != nullptr;) {
    frames.push_back(reader.read(frame));
    PyObject* const caller = reader.caller(frame);
    if (frame != innermost) reader.release(frame);
    frame = caller;
  }
  reader.unlock(state);
  return frames;
}

std::vector<int64_t> ranks_of_group(const std::string& name) {
  const auto lock = find<int (*)()>("PyGILState_Ensure");
  const auto unlock = find<void (*)(int)>("PyGILState_Release");
  if (lock == nullptr || unlock == nullptr) return {};
  const int state = lock();
  std::istringstream text(evaluate(fmt::format(
      "(lambda world: ' '.join(str(rank) for group, name in world.pg_names.items() if name == {}"
      " for rank in world.pg_group_ranks[group]))"
      "(__import__('torch.distributed.distributed_c10d', fromlist=['_world'])._world)",
      quoted(name))));
  unlock(state);
  return {std::istream_iterator<int64_t>(text), std::istream_iterator<int64_t>()};
}

bool runs_check() {
  const std::vector<PythonFrame> frames = python_frames();
  const auto lock = find<int (*)()>("PyGILState_Ensure");
  const auto unlock = find<void (*)(int)>("PyGILState_Release");
  if (frames.empty() || lock == nullptr || unlock == nullptr) return false;
  const int state = lock();
  const std::string answer = evaluate(
      fmt::format("str(__import__('sys').modules['onerank_observer'].checks.is_check({}, {}))",
                  quoted(frames.front().file),
                  frames.front().line));
  unlock(state);
  return answer == "True";
}

void end_program() {
  if (!call_soon(raise_system_exit, nullptr)) _exit(0);
}

bool python_raises() {
  const auto occurred = find<PyObject* (*)()>("PyErr_Occurred");
  return occurred != nullptr && occurred() != nullptr;
}

void run_script_soon(const std::string& path, const std::vector<ScriptVariable>& variables) {
  std::string set;
  for (const ScriptVariable& variable : variables) {
    set += fmt::format("{}: {}, ", quoted(variable.name), quoted(variable.text));
  }
  auto* const source = new std::string(
      fmt::format("exec(compile(open({0}).read(), {0}, 'exec'), {{{1}}})\n", quoted(path), set));
  if (!call_soon(run_script, source)) delete source;
}

namespace {

/// Of the package, with a slash: "<site-packages>/torch/".
std::string torch_folder() {
  Dl_info library{};
  if (dladdr(reinterpret_cast<void*>(&c10::get_backtrace), &library) == 0) return "";
  return std::filesystem::path(library.dli_fname).parent_path().parent_path().string() + "/";
}

}  // namespace

PythonLine python_line() {
  static const std::string torch = torch_folder();
  PythonLine line;
  for (const PythonFrame& frame : python_frames()) {
    if (frame.file.starts_with(torch)) {
      const std::string_view file = std::string_view(frame.file).substr(torch.size());
      line.is_printing = line.is_printing || file == "_tensor_str.py";
    } else if (line.text.empty()) {
      line.text = fmt::format("{}:{} in {}",
                              std::filesystem::path(frame.file).filename().string(),
                              frame.line,
                              frame.function);
    }
  }
  return line;
}

}  // namespace sim
