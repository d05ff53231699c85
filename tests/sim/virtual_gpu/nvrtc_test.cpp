#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

extern "C" {
int nvrtcVersion(int* major, int* minor);
int nvrtcCreateProgram(
    void**, const char*, const char*, int, const char* const*, const char* const*);
int nvrtcDestroyProgram(void**);
int nvrtcCompileProgram(void*, int, const char* const*);
int nvrtcGetLoweredName(void*, const char* expression, const char** name);
int nvrtcGetCUBINSize(void*, size_t* bytes);
int nvrtcGetCUBIN(void*, char* code);
}

namespace {

TEST(Nvrtc, GivesSomeCodeAndTheNameOfTheKernel) {
  void* program = nullptr;
  ASSERT_EQ(nvrtcCreateProgram(&program, "source", "name", 0, nullptr, nullptr), 0);
  EXPECT_EQ(nvrtcCompileProgram(program, 0, nullptr), 0);
  const char* name = nullptr;
  EXPECT_EQ(nvrtcGetLoweredName(program, "kernel<float>", &name), 0);
  EXPECT_STREQ(name, "kernel<float>");
  size_t bytes = 0;
  EXPECT_EQ(nvrtcGetCUBINSize(program, &bytes), 0);
  ASSERT_GT(bytes, 0u);
  std::string code(bytes + 1, 'x');
  EXPECT_EQ(nvrtcGetCUBIN(program, code.data()), 0);
  EXPECT_EQ(code.back(), 'x') << "wrote more than it said";
  EXPECT_EQ(nvrtcDestroyProgram(&program), 0);
  EXPECT_EQ(program, nullptr);
}

std::string code_of(const std::string& source) {
  void* program = nullptr;
  EXPECT_EQ(nvrtcCreateProgram(&program, source.c_str(), "name", 0, nullptr, nullptr), 0);
  EXPECT_EQ(nvrtcCompileProgram(program, 0, nullptr), 0);
  size_t bytes = 0;
  EXPECT_EQ(nvrtcGetCUBINSize(program, &bytes), 0);
  std::string code(bytes, 'x');
  EXPECT_EQ(nvrtcGetCUBIN(program, code.data()), 0);
  EXPECT_EQ(nvrtcDestroyProgram(&program), 0);
  return code;
}

TEST(Nvrtc, CodeSaysWhatItsKernelsAreGiven) {
  const std::string code = code_of(R"(
    template <typename T> struct Pair { T a, b; };
    __global__ void __launch_bounds__(block_size)
        transpose(const Type* __restrict__ const input, const float* const noop,
                  Type* __restrict__ const output, const size_t row_length) { f(input); }
    extern "C" __launch_bounds__(512, 4) __global__ void scale(float *x, unsigned int n, float by);
    __global__ void nothing() {}
    __global__ void pairs(Pair<float> pair, float* x) {}
    __global__ void first(T x) {}
  )");
  EXPECT_THAT(code,
              testing::HasSubstr(".entry transpose(.param .b64 p, .param .b64 p, "
                                 ".param .b64 p, .param .b64 p)"));
  EXPECT_THAT(code,
              testing::HasSubstr(".entry scale(.param .b64 p, .param .b32 p, .param .b32 p)"));
  EXPECT_THAT(code, testing::HasSubstr(".entry nothing()"));
  EXPECT_THAT(code, testing::Not(testing::HasSubstr("pairs"))) << "its size is not known";
  EXPECT_THAT(code, testing::Not(testing::HasSubstr("first")));
  EXPECT_EQ(code.back(), '\0') << "PTX is a text";
}

TEST(Nvrtc, HasTheVersionOfTheRuntime) {
  int major = 0;
  int minor = -1;
  EXPECT_EQ(nvrtcVersion(&major, &minor), 0);
  EXPECT_GE(major, 12);
  EXPECT_EQ(minor, 0);
}

}  // namespace
