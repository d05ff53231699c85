// How much memory a GPU has, as Onerank knows it.
#include <iostream>

#include "estimator/hardware/hardware.h"

int main() {
  const estimator::Gpu* gpu = estimator::find_gpu("h100");
  std::cout << gpu->id << ": " << gpu->memory_bytes << " bytes\n";
  return gpu->memory_bytes > 0 ? 0 : 1;
}
