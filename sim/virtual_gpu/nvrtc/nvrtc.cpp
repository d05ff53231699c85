#include <cuda.h>

#include <cstring>

/// NVRTC compiles nothing: a program's code is a few bytes, which the driver's stub never reads.
/// A kernel's lowered name is its name expression.

enum nvrtcResult { NVRTC_SUCCESS = 0, NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID = 8 };

struct _nvrtcProgram {};
using nvrtcProgram = _nvrtcProgram*;

namespace {

constexpr char kCode[] = "virtual";
constexpr char kLog[] = "";

}  // namespace

extern "C" {

nvrtcResult nvrtcVersion(int* major, int* minor) {
  *major = CUDA_VERSION / 1000;
  *minor = 0;
  return NVRTC_SUCCESS;
}

const char* nvrtcGetErrorString(nvrtcResult result) {
  return result == NVRTC_SUCCESS ? "NVRTC_SUCCESS" : "refused by the virtual GPU";
}

nvrtcResult nvrtcCreateProgram(
    nvrtcProgram* program, const char*, const char*, int, const char* const*, const char* const*) {
  *program = new _nvrtcProgram;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
  delete *program;
  *program = nullptr;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcAddNameExpression(nvrtcProgram, const char*) { return NVRTC_SUCCESS; }

nvrtcResult nvrtcCompileProgram(nvrtcProgram, int, const char* const*) { return NVRTC_SUCCESS; }

nvrtcResult nvrtcGetLoweredName(nvrtcProgram, const char* expression, const char** name) {
  *name = expression;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetPTXSize(nvrtcProgram, size_t* bytes) {
  *bytes = sizeof kCode;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetPTX(nvrtcProgram, char* code) {
  std::memcpy(code, kCode, sizeof kCode);
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t* bytes) {
  return nvrtcGetPTXSize(program, bytes);
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* code) { return nvrtcGetPTX(program, code); }

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram, size_t* bytes) {
  *bytes = sizeof kLog;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram, char* log) {
  std::memcpy(log, kLog, sizeof kLog);
  return NVRTC_SUCCESS;
}
}
