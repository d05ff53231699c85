// onerank: the command line. Only this file catches errors and turns them into exit codes.

#include "estimator/base/machine.h"
#include "sim/cli/command_line.h"

int main(int argc, char** argv) {
  estimator::take_usual_signals();
  estimator::tell_uncaught_failures();
  try {
    return static_cast<int>(sim::run_command_line(argc, argv, sim::current_environment()));
  } catch (...) {
    return static_cast<int>(estimator::tell_failure(std::current_exception()));
  }
}
