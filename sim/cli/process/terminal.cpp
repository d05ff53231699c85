#include "sim/cli/process/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace sim {

int output_columns(int otherwise) {
  winsize size{};
  const bool is_terminal = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_terminal ? size.ws_col : otherwise;
}

bool output_has_colours(const Environment& environment) {
  if (find_variable(environment, kNoColourVariable)) return false;
  if (const auto forced = find_variable(environment, kForceColourVariable)) return *forced != "0";
  return isatty(STDOUT_FILENO) == 1 && find_variable(environment, kTerminalVariable) != "dumb";
}

}  // namespace sim
