#include "sim/exec/python_line.h"

#include <c10/util/Backtrace.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <string_view>

#include "sim/exec/python.h"

namespace sim {
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
