#include "sim/exec/python_line.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <torch/csrc/profiler/combined_traceback.h>

#include <exception>
#include <filesystem>
#include <string_view>

namespace sim {
namespace {

/// Of the package, with a slash: "<site-packages>/torch/".
std::string torch_folder() {
  Dl_info library{};
  if (dladdr(reinterpret_cast<void*>(&torch::symbolize), &library) == 0) return "";
  return std::filesystem::path(library.dli_fname).parent_path().parent_path().string() + "/";
}

PythonLine line_of(const torch::SymbolizedTracebacks& traceback) {
  static const std::string torch = torch_folder();
  PythonLine line;
  for (const uint64_t index : traceback.tracebacks.at(0)) {  // innermost first
    const auto& frame = traceback.all_frames.at(index);
    if (frame.filename.starts_with(torch)) {
      const std::string_view file = std::string_view(frame.filename).substr(torch.size());
      line.is_printing = line.is_printing || file == "_tensor_str.py";
    } else if (line.text.empty()) {
      line.text = fmt::format("{}:{} in {}",
                              std::filesystem::path(frame.filename).filename().string(),
                              frame.lineno,
                              frame.funcname);
    }
  }
  return line;
}

}  // namespace

PythonLine python_line() try {
  const auto traceback =
      torch::CapturedTraceback::gather(/*python=*/true, /*script=*/false, /*cpp=*/false);
  return line_of(torch::symbolize({traceback.get()}));
} catch (const std::exception&) {
  return {};  // a place that cannot be told is left out
}

}  // namespace sim
