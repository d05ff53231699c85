#include "sim/cli/commands/program_trace_output.h"

#include <fmt/format.h>

#include "estimator/base/files.h"
#include "estimator/program/program_trace_file.h"
#include "sim/cli/process/output.h"

namespace sim {

void write_program_trace(const std::string& path, const estimator::ProgramReplay& replayed) {
  const estimator::ProgramTrace trace = estimator::program_trace(replayed);
  estimator::write_file_whole(path, trace.text);
  if (trace.left_out.empty()) return;
  write_to_standard_error(
      fmt::format("{} has not all ranks, so that it can be opened: rank {} and {} more are left "
                  "out\n",
                  path,
                  trace.left_out.front(),
                  trace.left_out.size() - 1));
}

}  // namespace sim
