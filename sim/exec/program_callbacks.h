// Connects torch with the recorder of the process, in a program that does not know of the recorder.
#pragma once

#include "sim/exec/program_recorder.h"

namespace sim {

/// For the rest of the process, reports operators, autograd nodes and optimizers of every thread to
/// `recorder`, which must live as long as the process.
void install_program_callbacks(ProgramRecorder& recorder);

}  // namespace sim
