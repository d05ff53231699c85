// The recorder's library as the preloaded hooks see it.

#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>

#include "estimator/base/fields.h"
#include "estimator/base/files.h"
#include "sim/exec/messages/absent_peers_store.h"
#include "sim/exec/messages/stub_gloo.h"
#include "sim/exec/program/python.h"
#include "sim/exec/program/recorder_interface.h"
#include "sim/exec/program_recorder.h"
#include "sim/exec/values/running_operators.h"
#include "sim/tracking/torch_version.h"
#include "sim/virtual_gpu/find_control.h"

namespace {

/// Null before the GPU is used, and in a process that was forked since.
sim::ProgramRecorder* recorder = nullptr;

void process_ends() {
  if (recorder != nullptr) recorder->finish();
}

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

sim::ExecSettings read_settings() {
  sim::ExecSettings settings;
  estimator::FieldReader reader(sim::kExecSettingsVariable);
  reader.read(
      estimator::parse_json(variable(sim::kExecSettingsVariable), sim::kExecSettingsVariable),
      settings,
      "");
  reader.throw_if_any();
  return settings;
}

void start_recorder() try {
  sim::check_torch_version();
  recorder = new sim::ProgramRecorder(read_settings(), variable(sim::kExecFolderVariable));
  recorder->start(variable(sim::kExecRecorderVariable));
  sim::set_refusal_listener([](const std::string& what) {
    if (recorder != nullptr) recorder->not_answered(what);
  });
  pthread_atfork(nullptr, nullptr, [] { recorder = nullptr; });
  std::atexit(process_ends);
} catch (const estimator::UserError& error) {
  std::fputs(error.what(), stderr);
  std::fflush(nullptr);
  std::_Exit(static_cast<int>(error.exit_code()));
}

/// Makes launch.py look at what the program has loaded by now.
void watch_launch() {
  const std::filesystem::path library = variable(sim::kExecRecorderVariable);
  sim::run_script_soon((library.parent_path() / "launch.py").string(),
                       {{"recorder_path", library.string()},
                        {"rank", variable(sim::kExecWantedRankVariable)},
                        {"folder", variable(sim::kExecFolderVariable)},
                        {"deadline", variable(sim::kExecDeadlineVariable)}});
}

void gpu_starts() {
  static std::once_flag once;
  std::call_once(once, [] {
    watch_launch();
    start_recorder();
  });
}

/// By a store ranks meet: before it is made, nobody knows which rank this process is.
void store_is_made() {
  static std::once_flag once;
  std::call_once(once, watch_launch);
}

void make_tcp_store(void* place, void* host, const void* options) {
  store_is_made();
  sim::make_tcp_store(place, host, options);
}

void make_file_store(void* place, void* path, int workers) {
  store_is_made();
  sim::make_file_store(place, path, workers);
}

int multicast_of_others() {
  auto* const make = ONERANK_FIND_CONTROL(onerank_virtual_gpu_multicast_of_others);
  return make == nullptr ? -1 : make();
}

}  // namespace

void onerank_exec_enter_module(const char* path) {
  if (recorder != nullptr) recorder->module_entered(path);
}

void onerank_exec_leave_module() {
  if (recorder != nullptr) recorder->module_left();
}

void onerank_exec_closure_starts() {
  if (recorder != nullptr) recorder->closure_started();
}

void onerank_exec_closure_ends() {
  if (recorder != nullptr) recorder->closure_finished();
}

void onerank_exec_optimizer_steps(uint64_t key) {
  if (recorder != nullptr) recorder->optimizer_told(key);
}

void onerank_exec_compiles() {
  if (recorder != nullptr) recorder->code_compiled();
}

void onerank_exec_saves() {
  if (recorder != nullptr) recorder->end_after_last_step();
}

void onerank_exec_raised(const char* exception) {
  if (recorder != nullptr) recorder->raised(exception);
}

int onerank_exec_was_ended() {
  return recorder != nullptr && recorder->has_ended_program() ? 1 : 0;
}

void onerank_exec_memory_lasts(uint64_t address, const char* category, const char* name) {
  if (recorder != nullptr) recorder->memory_lasts(address, category, name);
}

void onerank_exec_tensor_lies(uint64_t address, int64_t bytes) {
  if (recorder != nullptr) recorder->tensor_lies(address, bytes);
}

void onerank_exec_kernel_updates(const char* name,
                                 const uint64_t* addresses,
                                 int64_t count,
                                 int64_t updated) {
  if (recorder == nullptr) return;
  recorder->kernel_updates(name, {addresses, static_cast<size_t>(count)}, updated);
}

void onerank_exec_kernel_reads(const uint64_t* addresses, int64_t count) {
  if (recorder != nullptr) recorder->kernel_reads({addresses, static_cast<size_t>(count)});
}

void onerank_exec_kernel_loops(const int64_t* lengths, int64_t count) {
  sim::KernelArguments::kernel_loops({lengths, static_cast<size_t>(count)});
}

void onerank_exec_attention_starts(const int64_t* sizes, const char* dtype) {
  if (recorder != nullptr) recorder->attention_started(sim::flex_attention(sizes), dtype);
}

void onerank_exec_product_starts(const int64_t* numbers) {
  if (recorder != nullptr) recorder->product_started(sim::told_product(numbers));
}

void onerank_exec_work_ends() {
  if (recorder != nullptr) recorder->work_finished();
}

void onerank_exec_tuned(const char* name, const char* choice, int64_t tried) {
  if (recorder != nullptr) recorder->tuned({.name = name, .choice = choice, .tried = tried});
}

int onerank_exec_read_known(uint64_t address, int64_t bytes, void* values) {
  return recorder != nullptr && recorder->read_known(address, bytes, values) ? 1 : 0;
}

void onerank_exec_tensor_holds(uint64_t address, int64_t bytes, const void* values) {
  if (recorder != nullptr) recorder->tensor_holds(address, bytes, values);
}

void onerank_exec_experts_chosen(
    uint64_t map, int64_t tokens, int64_t experts, int64_t choices, const char* chooser) {
  if (recorder == nullptr) return;
  recorder->experts_chosen(
      {.map = map, .tokens = tokens, .experts = experts, .choices = choices, .chooser = chooser});
}

void onerank_exec_own_work_starts() { sim::own_work_starts(); }

void onerank_exec_own_work_ends() { sim::own_work_ends(); }

void onerank_exec_model_reads(uint64_t model, int64_t integers) {
  if (recorder != nullptr) recorder->model_reads(model, integers);
}

void onerank_exec_evaluation_starts() {
  if (recorder != nullptr) recorder->evaluation_started();
}

void onerank_exec_evaluation_ends() {
  if (recorder != nullptr) recorder->evaluation_finished();
}

void onerank_exec_host_updated(int64_t bytes, int is_fused) {
  if (recorder != nullptr) recorder->host_updated(bytes, is_fused != 0);
}

void onerank_exec_host_waits(double seconds, int loads_data) {
  if (recorder != nullptr) recorder->host_waited(seconds, loads_data != 0);
}

void onerank_exec_region_made(const char* region, int steps, void (*before)(), void (*after)()) {
  if (recorder == nullptr) return;
  recorder->compiled_steps().made(region, steps != 0, {.before = before, .after = after});
}

void onerank_exec_is_rank(int64_t rank, int64_t world_size) {
  if (recorder != nullptr) recorder->rank_told(rank, world_size);
}

void onerank_exec_group_begins(const char* name,
                               const char* description,
                               const int64_t* ranks,
                               int64_t size) {
  sim::group_begins(name, description, {ranks, ranks + size});
}

void onerank_exec_group_is_made() { sim::group_is_made(); }

void onerank_exec_leave_out() {
  if (recorder != nullptr) recorder->leave_out();
}

void onerank_exec_parameters(const char* json) {
  if (recorder != nullptr) recorder->parameters_told(json);
}

const onerank_exec_recorder* onerank_exec_get_recorder() {
  static const onerank_exec_recorder interface = {.gpu_starts = gpu_starts,
                                                  .process_ends = process_ends,
                                                  .make_tcp_store = make_tcp_store,
                                                  .make_file_store = make_file_store,
                                                  .make_gloo = sim::make_gloo,
                                                  .multicast_of_others = multicast_of_others};
  return &interface;
}
