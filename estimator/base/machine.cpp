#include "estimator/base/machine.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <system_error>

#include "estimator/base/error_document.h"
#include "estimator/base/files.h"

namespace estimator {
namespace {

struct Shortage {
  int error_number;
  const char* way_out;
};

constexpr const char* kMoreRoom =
    "make room on that disk, or use another one; temporary files "
    "are in the folder that TMPDIR names";
constexpr std::array kShortages = {
    Shortage{EAGAIN, "end other programs, or raise the limit on processes (ulimit -u)"},
    Shortage{ENOMEM, "end other programs: this machine's memory, or a limit on it, is used up"},
    Shortage{EMFILE, "raise the limit on open files (ulimit -n)"},
    Shortage{ENFILE, "end other programs: this machine has too many open files"},
    Shortage{ENOSPC, kMoreRoom},
    Shortage{EDQUOT, kMoreRoom},
    Shortage{EFBIG, "raise the limit on the size of files (ulimit -f)"},
    Shortage{EIO, "look at that disk: it does not work"},
};

constexpr std::array kSignalsOfWriting = {SIGPIPE, SIGXFSZ};

void tell(const char* text) { std::fputs(text, stderr); }

void tell(const UserError& error, const std::string& errors_file) {
  tell(error.what());
  if (errors_file.empty() || error.problems().empty()) return;
  try {
    write_file_whole(errors_file, error_message(error));
  } catch (const UserError&) {  // the text has to do
  }
}

constexpr const char* kNoMemory = "this machine has no memory left for Onerank";
constexpr const char* kMoreMemory = "end other programs, or raise the limit on memory (ulimit -v)";

}  // namespace

std::optional<std::string> machine_way_out(int error_number) {
  const auto found = std::find_if(kShortages.begin(), kShortages.end(), [&](const Shortage& row) {
    return row.error_number == error_number;
  });
  if (found == kShortages.end()) return std::nullopt;
  return found->way_out;
}

UserError machine_error(std::string what, int error_number) {
  return UserError({.what = std::move(what),
                    .where = std::strerror(error_number),
                    .help = machine_way_out(error_number)
                                .value_or("look at what this machine allows this user to do")},
                   ExitCode::kMachineLacks);
}

UserError no_memory_error() {
  return UserError({.what = kNoMemory, .where = "", .help = kMoreMemory}, ExitCode::kMachineLacks);
}

ExitCode tell_failure(const std::exception_ptr& thrown, const std::string& errors_file) {
  try {
    std::rethrow_exception(thrown);
  } catch (const UserError& error) {
    tell(error, errors_file);
    return error.exit_code();
  } catch (const std::bad_alloc&) {  // nothing may be allocated here
    std::fprintf(stderr, "error: %s\n  help: %s\n", kNoMemory, kMoreMemory);
    return ExitCode::kMachineLacks;
  } catch (const std::system_error& error) {
    tell(machine_error(error.what(), error.code().value()), errors_file);
    return ExitCode::kMachineLacks;
  } catch (const std::exception& error) {
    tell(to_text({{.what = std::string("internal: ") + error.what(),
                   .where = "",
                   .help = "this is a bug in Onerank: please report it with the command"}})
             .c_str());
    return ExitCode::kInternal;
  }
}

void tell_uncaught_failures() {
  std::set_terminate([] {
    const std::exception_ptr thrown = std::current_exception();
    if (!thrown) std::abort();
    _exit(static_cast<int>(tell_failure(thrown)));
  });
}

void take_usual_signals() {
  for (const int signal_number : kSignalsOfWriting) std::signal(signal_number, SIG_IGN);
  std::signal(SIGCHLD, SIG_DFL);
}

void restore_signals_of_writing() {
  for (const int signal_number : kSignalsOfWriting) std::signal(signal_number, SIG_DFL);
}

}  // namespace estimator
