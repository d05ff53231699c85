#include <cuda.h>

#include <cstring>
#include <string>

#include "sim/virtual_gpu/nvrtc/kernel_signatures.h"

/// NVRTC compiles nothing: a program's code, as PTX and as what passes for a cubin, says what the
/// parameters of its kernels are. A kernel's lowered name is its name expression.

enum nvrtcResult { NVRTC_SUCCESS = 0, NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID = 8 };

struct _nvrtcProgram {
  std::string code;
};
using nvrtcProgram = _nvrtcProgram*;

namespace {

constexpr char kVersion[] = ".version 8.0\n";
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

nvrtcResult nvrtcCreateProgram(nvrtcProgram* program,
                               const char* source,
                               const char*,
                               int,
                               const char* const*,
                               const char* const*) {
  *program = new _nvrtcProgram{kVersion + virtual_gpu::ptx_of_kernels(source)};
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

nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t* bytes) {
  *bytes = program->code.size() + 1;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetPTX(nvrtcProgram program, char* code) {
  std::memcpy(code, program->code.c_str(), program->code.size() + 1);
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
