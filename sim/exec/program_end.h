// Ends the program that this library lives in, as itself would end.
#pragma once

namespace sim {

/// Python: SystemExit(0) in its main thread as soon as it runs Python code again, so that `finally`
/// blocks and exit handlers run. Any other program: ends at once, without its exit handlers.
void end_program();

}  // namespace sim
