// The program's own line of Python that this thread is at.
#pragma once

#include <string>

namespace sim {

struct PythonLine {
  std::string text;          ///< "train.py:30 in forward": outside of torch; "" where there is none
  bool is_printing = false;  ///< a tensor is being turned into text
};
/// Takes some microseconds, and the interpreter's lock.
PythonLine python_line();

}  // namespace sim
