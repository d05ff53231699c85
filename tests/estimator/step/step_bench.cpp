// How many steps a second step_time() works out on one core, when profiles have been priced. Prints
// a line for each shape of pipeline; scripts/bench runs it. A benchmark, not a test.
#include <fmt/format.h>

#include <ctime>

#include "estimator/step/step_time.h"
#include "tests/estimator/test_plans.h"

namespace {

using estimator::Json;
using estimator::Plan;
/// CPU time: the machine may be busy with other things.
double now_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

struct Shape {
  const char* what;
  int64_t gpus, tensor, stages, chunks, micro_batches;
};

Plan plan_of(const Shape& shape) {
  const int64_t data = shape.gpus / shape.tensor / shape.stages;
  return estimator::small_plan(
      {{"model", {{"num_layers", shape.stages * shape.chunks}}},
       {"cluster", {{"nodes", shape.gpus / 8}}},
       {"parallelism",
        {{"tensor", shape.tensor}, {"pipeline", shape.stages}, {"virtual_stages", shape.chunks}}},
       {"training", {{"global_batch_size", data * shape.micro_batches}}}});
}

/// Every time differs a little, as stages do.
std::vector<estimator::StageTime> stages_of(const Shape& shape) {
  std::vector<estimator::StageTime> stages(static_cast<std::size_t>(shape.stages));
  double seconds = 1e-3;
  for (estimator::StageTime& stage : stages) {
    stage.send_forward_bytes = stage.send_backward_bytes = 1 << 24;
    for (int64_t c = 0; c < shape.chunks; ++c) {
      estimator::ChunkTime chunk;
      chunk.forward.compute_seconds = seconds *= 1.001;
      chunk.backward.compute_seconds = 2 * seconds;
      chunk.reduction = {.beside_seconds = seconds, .left_seconds = seconds / 8};
      chunk.gathers = {.seconds = seconds, .added_seconds = seconds / 8};
      stage.chunks.push_back(chunk);
    }
  }
  return stages;
}

void measure(const Shape& shape) {
  const Plan plan = plan_of(shape);
  const estimator::ParallelLayout layout(plan.parallelism);
  const estimator::Fabric fabric = fabric_of(plan);
  const std::vector<estimator::StageTime> stages = stages_of(shape);
  const double start = now_seconds();
  int64_t steps = 0;
  double sum = 0, seconds = 0;
  for (; seconds < 0.5; ++steps) {
    sum += step_time(plan, layout, fabric, stages).iteration_seconds;
    seconds = now_seconds() - start;
  }
  fmt::print("{:<40} {:>7} {:>4} {:>3} {:>6} {:>12.4f} {:>12.0f}{}\n",
             shape.what,
             shape.gpus,
             shape.stages,
             shape.chunks,
             shape.micro_batches,
             1e3 * seconds / static_cast<double>(steps),
             static_cast<double>(steps) / seconds,
             sum > 0 ? "" : " (nothing)");
}

}  // namespace

int main() {
  fmt::print("{:<40} {:>7} {:>4} {:>3} {:>6} {:>12} {:>12}\n",
             "analytic step, one core",
             "GPUs",
             "p",
             "v",
             "m",
             "ms a step",
             "steps/s");
  for (const Shape& shape : {Shape{"no pipeline", 1024, 8, 1, 1, 64},
                             Shape{"1F1B", 1024, 8, 8, 1, 32},
                             Shape{"1F1B, many micro-batches", 1024, 8, 8, 1, 256},
                             Shape{"interleaved, Llama 3 405B", 16384, 8, 16, 8, 16},
                             Shape{"1F1B, 100,000 GPUs", 102400, 8, 64, 1, 4096},
                             Shape{"interleaved, 100,000 GPUs", 102400, 8, 64, 4, 4096}}) {
    measure(shape);
  }
}
