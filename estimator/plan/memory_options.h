// The options of memory; see options.h.
#pragma once

#include "estimator/base/option.h"
#include "estimator/plan/plan.h"

namespace estimator {

template <class Visitor>
void visit_fields(Visitor& visit, MemoryConfig& memory) {
  visit("allocator",
        memory.allocator,
        {"PYTORCH_CUDA_ALLOC_CONF of the job", {ours({"--allocator"})}});
  visit("cuda_module_loading",
        memory.cuda_module_loading,
        "CUDA_MODULE_LOADING of the job: lazy, or eager as before CUDA 11.7");
  visit("cublas_workspace",
        memory.cublas_workspace,
        {"CUBLAS_WORKSPACE_CONFIG of the job: :4096:8 is 8 x 4,096 KiB",
         {ours({"--cublas-workspace"})}});
  visit("headroom_bytes",
        memory.headroom_bytes,
        Option{"memory that must stay free for the verdict to be yes: 10%, 8GiB",
               kBytes,
               {ours({"--headroom"})}}
            .of_the_cluster());
}

}  // namespace estimator
