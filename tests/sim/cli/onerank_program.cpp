#include "tests/sim/cli/onerank_program.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "sim/cli/process/environment.h"
#include "tests/paths.h"

namespace sim {
namespace {

namespace fs = std::filesystem;

std::string read_all(const fs::path& path) {
  std::ostringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  return content.str();
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

void redirect(int descriptor, const fs::path& path) {
  dup2(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), descriptor);
}

}  // namespace

OnerankProgram::OnerankProgram() : environment_(current_environment()) {
  std::string name = (fs::temp_directory_path() / "onerank-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a folder");
  folder_ = name;
  fs::create_directory(folder_ / "tmp");
  for (const char* variable : {kRankVariable,
                               kWorldSizeVariable,
                               kAllocatorVariable,
                               kOldAllocatorVariable,
                               kCublasWorkspaceVariable}) {
    environment_.erase(variable);
  }
  environment_["TMPDIR"] = path("tmp");
  environment_[kRankProcessVariable] = tests::kFakeRank;
  environment_[kDriverFileVariable] = tests::kFakeRank;  // the fake rank's --device cuda has one
}

OnerankProgram::~OnerankProgram() { fs::remove_all(folder_); }

pid_t OnerankProgram::start(const std::vector<std::string>& arguments) {
  std::vector<std::string> texts = {tests::kProgram};
  texts.insert(texts.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables;
  for (const auto& [name, value] : environment_) variables.push_back(name + "=" + value);
  const std::vector<char*> argv = pointers(texts);
  const std::vector<char*> envp = pointers(variables);
  const pid_t pid = fork();
  if (pid != 0) return pid;
  if (!input_file_.empty()) dup2(open(input_file_.c_str(), O_RDONLY), STDIN_FILENO);
  redirect(STDOUT_FILENO, folder_ / "stdout");
  redirect(STDERR_FILENO, folder_ / "stderr");
  close_range(STDERR_FILENO + 1, ~0U, 0);  // limits count what whoever runs the tests left open
  for (const auto& [resource, most] : limits_) {
    const rlimit limit{most, most};
    setrlimit(static_cast<__rlimit_resource_t>(resource), &limit);
  }
  if (ignores_children_) std::signal(SIGCHLD, SIG_IGN);
  execve(argv[0], argv.data(), envp.data());
  _exit(126);
}

ProgramResult OnerankProgram::finish(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  return {.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          .output = read("stdout"),
          .error = read("stderr")};
}

ProgramResult OnerankProgram::run(const std::vector<std::string>& arguments) {
  return finish(start(arguments));
}

std::string OnerankProgram::write(const std::string& name, const std::string& content) const {
  std::ofstream(path(name), std::ios::binary) << content;
  return path(name);
}

std::string OnerankProgram::read(const std::string& name) const { return read_all(path(name)); }

std::vector<std::string> OnerankProgram::temporary_files() const {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_ / "tmp")) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

void OnerankProgram::age_temporary_files() const {
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_ / "tmp")) {
    fs::last_write_time(entry.path(), fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
}

std::vector<std::string> small_plan(std::vector<std::string> first,
                                    const std::vector<std::string>& more) {
  const std::vector<std::pair<std::string, std::string>> usual = {
      {"--model", "llama3-8b"}, {"--gpu", "h100-sxm"}, {"--nodes", "1"}, {"--device", "cuda"}};
  for (const auto& [flag, value] : usual) {
    if (std::find(more.begin(), more.end(), flag) == more.end()) {
      first.insert(first.end(), {flag, value});
    }
  }
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

}  // namespace sim
