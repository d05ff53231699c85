// Connects torch, in a program that knows nothing of it, with the recorder of the process.
#pragma once

#include "sim/exec/program_recorder.h"

namespace sim {

/// For the rest of the process: operators, autograd nodes and optimizers of every thread.
/// `recorder` must live as long.
void install_program_callbacks(ProgramRecorder& recorder);

}  // namespace sim
