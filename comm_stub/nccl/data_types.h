#pragma once

#include <cstddef>

#include "comm_stub/nccl/nccl_types.h"

namespace nccl {

struct DataType {
  const char* name;  // as c10 names it
  size_t bytes;
};

/// Null if there is no such type.
const DataType* find_type(ncclDataType_t type);

}  // namespace nccl
