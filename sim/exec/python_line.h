// The line of the program's own Python code that this thread is running.
#pragma once

#include <string>

namespace sim {

struct PythonLine {
  std::string text;          ///< "train.py:30 in forward", outside torch; "" if there is none
  bool is_printing = false;  ///< a tensor is being converted to text
};
/// Takes some microseconds, and takes the interpreter's lock.
PythonLine python_line();

}  // namespace sim
