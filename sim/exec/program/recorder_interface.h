// The interface between the preloaded hooks, which are loaded before torch, and the recorder, which
// links torch and is loaded by the hooks once torch is loaded.
#pragma once

#include <stdint.h>

extern "C" {

struct onerank_exec_recorder {
  /// The program is about to use the GPU for the first time. May be called often.
  void (*gpu_starts)();
  /// The process ends without running its exit handlers.
  void (*process_ends)();
  // Each function makes an object at `place` that answers for absent peers. Its class is the one
  // whose constructor was called, or derived from it (for Gloo: derived from its base class,
  // c10d::Backend). The arguments are those of the constructors; arguments that C++ passes by
  // hidden reference are pointers.
  void (*make_tcp_store)(void* place, void* host, const void* options);
  void (*make_file_store)(void* place, void* path, int workers);
  void (*make_gloo)(void* place, const void* store, int rank, int size, void* options);
  /// A new file descriptor of a multicast object that an absent rank made.
  int (*multicast_of_others)();
};

/// The function of the recorder's library that the hooks call. It never returns null.
const onerank_exec_recorder* onerank_exec_get_recorder();

// The functions that the scripts in Python (observer/recorder.py, launch.py) call, once the
// recorder is loaded. Texts are UTF-8.

/// The forward of the module at `path` ("layers.3.mlp") begins, and ends.
void onerank_exec_enter_module(const char* path);
void onerank_exec_leave_module();
/// The closure that the stepping optimizer was given begins, and ends.
void onerank_exec_closure_starts();
void onerank_exec_closure_ends();
/// The optimizer whose step has begun. The key of two optimizers is the same if they step the same
/// parameters.
void onerank_exec_optimizer_steps(uint64_t key);
/// torch.compile begins to compile something.
void onerank_exec_compiles();
/// The program is about to write a file of tensors. After its last step it is ended.
void onerank_exec_saves();
/// This exception ends the process; "ValueError: " and its text, of one line.
void onerank_exec_raised(const char* exception);
/// Whether the program has been told to end, after its last step.
int onerank_exec_was_ended();
/// The block at `address` holds `category` (estimator::MemoryCategory) of the parameter `name`.
void onerank_exec_memory_lasts(uint64_t address, const char* category, const char* name);
/// A tensor that lasts begins at `address`, and has so many bytes of its block.
void onerank_exec_tensor_lies(uint64_t address, int64_t bytes);
/// A kernel of torch.compile with this name is launched with tensors at `addresses`. It reads and
/// writes the first `updated` of them, though it is given them once.
void onerank_exec_kernel_updates(const char* name,
                                 const uint64_t* addresses,
                                 int64_t count,
                                 int64_t updated);
/// Until the next call, kernels that this thread launches only read at these addresses.
void onerank_exec_kernel_reads(const uint64_t* addresses, int64_t count);
/// Until the next call, these are the lengths of the loops of kernels that this thread launches;
/// count 0: it is not known which of their numbers are.
void onerank_exec_kernel_loops(const int64_t* lengths, int64_t count);
/// Until it ends, what this thread launches is one kernel of torch.compile's flex_attention.
/// `sizes` are those of sim::FlexAttention in its order; `dtype` is c10's name of the queries'
/// type.
void onerank_exec_attention_starts(const int64_t* sizes, const char* dtype);
/// Until it ends, what this thread launches computes this product, as torch.compile's templates for
/// products do. `numbers` are those of onerank_virtual_gpu_product: m, n, k, batch, type,
/// uses_tf32, convolution, channels_in, channels_out, window, inputs, outputs; row-major.
void onerank_exec_product_starts(const int64_t* numbers);
/// What attention_starts() or product_starts() began.
void onerank_exec_work_ends();
/// The program has chosen `choice` for the kernel `name` by times of the device, out of `tried`.
void onerank_exec_tuned(const char* name, const char* choice, int64_t tried);
/// Copies memory of the device to `values`, and gives 0 if it is not known what is there.
int onerank_exec_read_known(uint64_t address, int64_t bytes, void* values);
/// From now on memory of the device is known to hold these values.
void onerank_exec_tensor_holds(uint64_t address, int64_t bytes, const void* values);
/// The kernel `chooser` has marked which `choices` of `experts` experts each of `tokens` tokens
/// takes: a truth value for each token and expert, from `map` on.
void onerank_exec_experts_chosen(
    uint64_t map, int64_t tokens, int64_t experts, int64_t choices, const char* chooser);
/// What this thread does between these two is the observer's, and none of the program's.
void onerank_exec_own_work_starts();
void onerank_exec_own_work_ends();
/// An outermost module, the one at this address, is called to train on a tensor of so many
/// integers; 0: it is given none.
void onerank_exec_model_reads(uint64_t model, int64_t integers);
/// An outermost module that is trained is called without gradients, and the call ends.
void onerank_exec_evaluation_starts();
void onerank_exec_evaluation_ends();
/// A step of an optimizer has moved so many bytes of the host's memory; `is_fused`: in one pass
/// over its tensors.
void onerank_exec_host_updated(int64_t bytes, int is_fused);
/// The program has slept so long in its main thread, or waited there for its data loader.
void onerank_exec_host_waits(double seconds, int loads_data);
/// torch.compile made the region with this number, such as "3/0". If it `steps` an optimizer,
/// `before` and `after` are called before and after it, in the thread that runs it; `after` is not
/// called if an exception was raised.
void onerank_exec_region_made(const char* region, int steps, void (*before)(), void (*after)());
/// The rank and world size of this process, as torch.distributed says.
void onerank_exec_is_rank(int64_t rank, int64_t world_size);
/// torch.distributed begins to make the group `name`, whose `size` ranks of the world are `ranks`,
/// and has made it.
void onerank_exec_group_begins(const char* name,
                               const char* description,
                               const int64_t* ranks,
                               int64_t size);
void onerank_exec_group_is_made();
/// This process is none that is wanted: it leaves no profile.
void onerank_exec_leave_out();
/// All parameters that are known now, as a JSON list of estimator::ParameterRecord.
void onerank_exec_parameters(const char* json);
}
