// The recorder's library as the preloaded hooks see it.

#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "estimator/files.h"
#include "sim/exec/absent_peers_store.h"
#include "sim/exec/program_recorder.h"
#include "sim/exec/recorder_interface.h"
#include "sim/exec/stub_gloo.h"
#include "sim/rank/torch_version.h"

namespace {

sim::ProgramRecorder* recorder = nullptr;

sim::ExecSettings read_settings() {
  const char* text = std::getenv(sim::kExecSettingsVariable);
  sim::ExecSettings settings;
  estimator::FieldReader reader(sim::kExecSettingsVariable);
  reader.read(
      estimator::parse_json(text == nullptr ? "" : text, sim::kExecSettingsVariable), settings, "");
  reader.throw_if_any();
  return settings;
}

void start_recorder() try {
  sim::check_torch_version();
  recorder = new sim::ProgramRecorder(read_settings());
  recorder->start();
  sim::set_refusal_listener([](const std::string& what) { recorder->not_answered(what); });
  std::atexit([] { recorder->finish(); });
} catch (const estimator::UserError& error) {
  std::fputs(error.what(), stderr);
  std::fflush(nullptr);
  std::_Exit(static_cast<int>(error.exit_code()));
}

void gpu_starts() {
  static std::once_flag once;
  std::call_once(once, start_recorder);
}

void process_ends() {
  if (recorder != nullptr) recorder->finish();
}

}  // namespace

const onerank_exec_recorder* onerank_exec_get_recorder() {
  static const onerank_exec_recorder interface = {.gpu_starts = gpu_starts,
                                                  .process_ends = process_ends,
                                                  .make_tcp_store = sim::make_tcp_store,
                                                  .make_file_store = sim::make_file_store,
                                                  .make_gloo = sim::make_gloo};
  return &interface;
}
