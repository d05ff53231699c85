#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "sim/cli/torch/preload.h"

/// with_virtual_gpu FOLDER PROGRAM ARGUMENTS...: runs the program with the libraries of FOLDER
/// preloaded. Which GPU they play is the program's or its caller's business (ONERANK_VIRTUAL_GPU).
int main(int argc, char** argv) try {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s FOLDER PROGRAM ARGUMENTS...\n", argv[0]);
    return 2;
  }
  const sim::Preload preload(argv[1]);
  const pid_t child = fork();
  if (child == 0) {
    setenv("LD_PRELOAD", preload.value().c_str(), 1);
    execvp(argv[2], argv + 2);
    std::perror(argv[2]);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
