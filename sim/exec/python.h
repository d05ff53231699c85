// The Python interpreter of the program that this library lives in, if it has one.
#pragma once

#include <string>

namespace sim {

/// Ends the program as itself would end. Python: SystemExit(0) in its main thread as soon as it
/// runs Python code again, so that `finally` blocks and exit handlers run. Any other program: ends
/// at once, without its exit handlers.
void end_program();

/// Whether this thread, which has the interpreter, is raising an exception.
bool python_raises();

/// Has Python's main thread run the observer (observe.py, at `path`) as soon as it runs Python code
/// again. Without Python nothing is done.
void start_observer(const std::string& path, const std::string& recorder_path);

}  // namespace sim
