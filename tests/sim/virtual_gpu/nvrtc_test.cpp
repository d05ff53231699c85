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

TEST(Nvrtc, HasTheVersionOfTheRuntime) {
  int major = 0;
  int minor = -1;
  EXPECT_EQ(nvrtcVersion(&major, &minor), 0);
  EXPECT_GE(major, 12);
  EXPECT_EQ(minor, 0);
}

}  // namespace
