#include "tests/fuzz/arguments.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "sim/cli/command_line.h"
#include "tests/fuzz/fuzz.h"

namespace fuzz {
namespace {

/// Standard output, as long as it lives, in a file in memory.
class CapturedOutput {
 public:
  CapturedOutput() : file_(memfd_create("output", 0)), before_(dup(STDOUT_FILENO)) {
    if (file_ < 0 || before_ < 0) throw std::runtime_error("cannot capture standard output");
    std::fflush(stdout);
    dup2(file_, STDOUT_FILENO);
  }
  ~CapturedOutput() {
    std::fflush(stdout);
    dup2(before_, STDOUT_FILENO);
    close(before_);
    close(file_);
  }
  CapturedOutput(const CapturedOutput&) = delete;
  CapturedOutput& operator=(const CapturedOutput&) = delete;

  std::string text() const {
    std::fflush(stdout);
    std::string text(static_cast<size_t>(lseek(file_, 0, SEEK_END)), '\0');
    const ssize_t bytes = pread(file_, text.data(), text.size(), 0);
    text.resize(bytes < 0 ? 0 : static_cast<size_t>(bytes));
    return text;
  }

 private:
  int file_;
  int before_;
};

}  // namespace

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end).substr(0, text.find('\0')));  // as exec() passes it
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

void use_command(const std::vector<std::string>& arguments) {
  std::vector<const char*> words{"onerank"};
  for (const std::string& argument : arguments) words.push_back(argument.c_str());
  const CapturedOutput output;
  sim::run_command_line(static_cast<int>(words.size()), words.data(), {});
  expect_sound_text(output.text(), arguments.front());
  expect_printable(output.text(), arguments.front());
}

}  // namespace fuzz
