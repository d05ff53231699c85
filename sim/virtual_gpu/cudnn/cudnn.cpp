#include <cstddef>

/// cuDNN's version: programs choose their kernels by it. Its computations are refused, since the
/// workspaces they would ask for are not public.
namespace {

constexpr int kMajor = 9;
constexpr int kMinor = 19;
constexpr int kPatch = 0;

enum cudnnStatus_t { CUDNN_STATUS_SUCCESS = 0, CUDNN_STATUS_BAD_PARAM = 2000 };

}  // namespace

extern "C" {

size_t cudnnGetVersion() { return kMajor * 10000 + kMinor * 100 + kPatch; }

cudnnStatus_t cudnnGetProperty(int property, int* value) {
  constexpr int kVersion[] = {kMajor, kMinor, kPatch};
  if (property < 0 || property > 2) return CUDNN_STATUS_BAD_PARAM;
  *value = kVersion[property];
  return CUDNN_STATUS_SUCCESS;
}

const char* cudnnGetErrorString(int status) {
  return status == 0 ? "CUDNN_STATUS_SUCCESS" : "refused by the virtual GPU";
}

void cudnnGetLastErrorString(char* text, size_t length) {
  if (length > 0) text[0] = '\0';
}
}
