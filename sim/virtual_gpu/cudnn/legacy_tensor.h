#pragma once

#include "sim/virtual_gpu/cudnn/descriptor.h"

/// The tensor descriptors of cuDNN's older functions. Those of filters are the same here.
struct cudnnTensorStruct {
  virtual_gpu::cudnn::TensorShape shape;
  int format = 0;  // of a filter: cudnnTensorFormat_t
};
using cudnnTensorDescriptor_t = cudnnTensorStruct*;
