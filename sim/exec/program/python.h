// Access to the Python interpreter of the program in which this library is loaded, if it has one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sim {

/// Of Python code that runs.
struct PythonFrame {
  std::string file;
  std::string function;
  int line = 0;
};
/// Of this thread, innermost first; none without Python. Takes the interpreter's lock.
std::vector<PythonFrame> python_frames();

/// The ranks of the world that are members of torch.distributed's group of this name; none if
/// Python knows no such group. Takes the interpreter's lock.
std::vector<int64_t> ranks_of_group(const std::string& name);

/// Ends the program as if it ended by itself. In Python it raises SystemExit(0) in the main thread
/// as soon as that runs Python code again, so that `finally` blocks and exit handlers run. Any
/// other program ends at once, without its exit handlers.
void end_program();

/// Whether this thread is raising a Python exception. The thread must hold the interpreter's lock.
bool python_raises();

/// A variable of a script.
struct ScriptVariable {
  std::string name;
  std::string text;
};
/// Makes Python's main thread run the file at `path` as soon as it runs Python code again. An error
/// in it is printed. Does nothing in a program without Python.
void run_script_soon(const std::string& path, const std::vector<ScriptVariable>& variables);

/// The line of the program's own Python code that this thread is running.
struct PythonLine {
  std::string text;          ///< "train.py:30 in forward", outside torch; "" if there is none
  bool is_printing = false;  ///< a tensor is being converted to text
};
/// Takes some microseconds, and takes the interpreter's lock.
PythonLine python_line();

/// Whether the line of Python that this thread is running, also one of torch, checks what was
/// computed: an `assert`, an `if not` that raises an exception, or an `if` that asks whether it is
/// finite. Reads the line's file. Takes the interpreter's lock.
bool runs_check();

}  // namespace sim
