// What the program's output goes to: how wide it is, and whether it shows colours.
#pragma once

#include "sim/cli/process/environment.h"

namespace sim {

/// The number of columns of the terminal on standard output, or `otherwise` if that is no terminal.
int output_columns(int otherwise = 100);

/// Whether standard output is to have colours: not if NO_COLOR says something (no-color.org), else
/// if CLICOLOR_FORCE says something but 0 (bixense.com/clicolors), else on a terminal that is not
/// dumb.
bool output_has_colours(const Environment& environment);

}  // namespace sim
