// Which torch a program imports, and stubs for one that Onerank was not built for. Pythons and
// CMake are shell scripts here, so that nothing is compiled.

#include <filesystem>
#include <fstream>

#include "tests/sim/exec/exec_program.h"

namespace sim {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class ExecTorch : public ExecProgram {
 protected:
  std::string script(const std::string& name, const std::string& body) const {
    const std::string file = write(name, "#!/bin/sh\n" + body);
    fs::permissions(file, fs::perms::owner_all);
    return file;
  }

  /// A Python that finds a torch of this version, and uses no GPU. `cuda` is as version.py has it.
  std::string python_with(const std::string& version, const std::string& cuda = "'13.0'") {
    fs::create_directories(path("torch"));
    write("torch/version.py",
          "from typing import Optional\n\n__all__ = ['__version__']\n__version__ = '" + version +
              "'\ncuda: Optional[str] = " + cuda + "\ngit_version = '" + std::string(40, 'a') +
              "'\n");
    return script("python3.11", "echo " + path("torch/__init__.py") + "\n");
  }

  /// A CMake that writes down how it was called and makes what the real one would, or fails.
  void have_cmake(bool works) {
    fs::create_directories(path("bin"));
    script("bin/cmake",
           "echo \"$@\" >> " + path("cmake.calls") + "\n" +
               (works ? std::string("[ $1 = -S ] || exit 0\n"
                                    "mkdir -p $4/exec $4/virtual_gpu/lib\n"
                                    "touch $4/build.ninja $4/exec/libonerank_exec_recorder.so "
                                    "$4/exec/libonerank_exec_hooks.so\n"
                                    "touch $4/virtual_gpu/preload\n")
                      : std::string("echo no compiler >&2\nexit 1\n")));
    environment_["PATH"] = path("bin") + ":" + environment_["PATH"];
    environment_["XDG_CACHE_HOME"] = path("caches");
  }

  std::vector<std::string> cmake_calls() const {
    std::vector<std::string> calls;
    std::ifstream file(path("cmake.calls"));
    for (std::string line; std::getline(file, line);) calls.push_back(line);
    return calls;
  }

  /// One that works and that these stubs are not made for.
  static constexpr const char* kOther = "2.12.1+cu130";
};

struct TorchVersion {
  std::string version, cuda;  ///< as version.py has them
  std::string said;           ///< of its CUDA
};

TEST_F(ExecTorch, ThatIsNotKnownToWorkIsRefusedWithTheRangeOfThoseThatDo) {
  have_cmake(true);
  for (const auto& [version, cuda, said] : {TorchVersion{"2.5.1+cu124", "'12.4'", "for CUDA 12.4"},
                                            {"2.11.0+cpu", "None", "without CUDA"},
                                            {"2.7.1+cu118", "'11.8'", "for CUDA 11.8"},
                                            {"3.0.0+cu130", "'13.0'", "for CUDA 13.0"}}) {
    const ProgramResult result = run({"exec", "--", python_with(version, cuda), "train.py"});
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_THAT(result.error,
                StartsWith("error: this torch is not one that `onerank exec` works with\n  " +
                           path("torch") + ": " + version + ", " + said +
                           "\n  help: run the program with torch 2.6 to "));
  }
  EXPECT_TRUE(cmake_calls().empty());
}

TEST_F(ExecTorch, OfAReleaseThatWorksGetsStubsWhoeverBuiltItForCuda12Or13) {
  for (const auto& [version, cuda, said] :
       {TorchVersion{"2.6.0+cu124", "'12.4'", "2.6.0+cu124"},
        {"2.11.0+cu128", "'12.8'", "2.11.0+cu128"},
        {"2.10.0a0+b558c986e8.nv25.11", "'13.0'", "2.10.0a0"}}) {
    have_cmake(true);
    const ProgramResult result = run({"exec", "--", python_with(version, cuda), "train.py"});
    EXPECT_THAT(result.error, HasSubstr("onerank: making the stubs for torch " + said));
  }
  EXPECT_EQ(cmake_calls().size(), 6u);
}

TEST_F(ExecTorch, IsCheckedForWhatItLacks) {
  have_cmake(true);
  const ProgramResult cpu = run({"list", "torch", "--check", python_with("2.11.0+cpu", "None")});
  EXPECT_EQ(cpu.exit_code, 3);
  EXPECT_THAT(cpu.output,
              AllOf(StartsWith("torch 2.11.0+cpu of " + path("torch") + "\n"),
                    HasSubstr("  no  torch 2.6 to "),
                    HasSubstr("  no  libtorch_cuda.so\n      help: install a torch that is built"),
                    HasSubstr("  yes `cmake`, which makes the stubs")));
  const ProgramResult older =
      run({"list", "torch", "--check", python_with("2.8.0+cu128", "'12.8'")});
  EXPECT_EQ(older.exit_code, 3) << "there are no headers beside it";
  EXPECT_THAT(older.output,
              AllOf(HasSubstr("  yes torch 2.6 to "),
                    HasSubstr("  no  NVIDIA's headers, " + path("nvidia/cuda_runtime/include") +
                              "\n      help: pip install --no-deps nvidia-cuda-runtime-cu12")));
}

TEST_F(ExecTorch, IsCheckedOnlyWhereThereIsOne) {
  const ProgramResult none = run({"list", "torch", "--check", script("python3", "exit 1\n")});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.error, StartsWith("error: no torch to check\n"));
  const ProgramResult gpus = run({"list", "gpus", "--check", "python3"});
  EXPECT_EQ(gpus.exit_code, 2);
  EXPECT_THAT(gpus.error, HasSubstr("onerank list torch --check PYTHON"));
}

TEST_F(ExecTorch, ThatOnerankWasBuiltForNeedsNoStubs) {
  have_cmake(true);
  const ProgramResult result = run({"exec", "--", python_with("2.11.0+cu130"), "train.py"});
  EXPECT_THAT(result.error, StartsWith("error: the program did not use the GPU"));
  EXPECT_TRUE(cmake_calls().empty());
}

TEST_F(ExecTorch, GetsStubsAtFirstUseWhichAreKept) {
  have_cmake(true);
  const std::string python = python_with(kOther);
  const ProgramResult first = run({"exec", "--", python, "train.py"});
  EXPECT_THAT(first.error, HasSubstr("onerank: making the stubs for torch 2.12.1+cu130, once"));
  EXPECT_THAT(first.error, HasSubstr("error: the program did not use the GPU"));
  ASSERT_EQ(cmake_calls().size(), 2u);
  const std::string folder = path("caches/onerank/torch-2.12.1+cu130-aaaaaaaaaaaa-");
  EXPECT_THAT(cmake_calls()[0],
              AllOf(HasSubstr("-B " + folder), HasSubstr("-DONERANK_TORCH_DIR=" + path("torch"))));
  EXPECT_THAT(cmake_calls()[1],
              AllOf(StartsWith("--build " + folder), HasSubstr("onerank_exec_recorder")));

  const ProgramResult second = run({"exec", "--", python, "train.py"});
  EXPECT_THAT(second.error, Not(HasSubstr("making the stubs")));
  ASSERT_EQ(cmake_calls().size(), 3u) << "only whether Onerank's sources have changed is looked at";
  EXPECT_EQ(cmake_calls()[2], cmake_calls()[1]);
}

TEST_F(ExecTorch, WhoseStubsCannotBeMadeSaysWhere) {
  have_cmake(false);
  const ProgramResult result = run({"exec", "--", python_with(kOther), "train.py"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.error, HasSubstr("error: the stubs for torch 2.12.1+cu130 cannot be made"));
  const std::string folder = fs::directory_iterator(path("caches/onerank"))->path().filename();
  EXPECT_THAT(read("caches/onerank/" + folder + "/log"), HasSubstr("no compiler"));
}

TEST_F(ExecTorch, OfAProgramThatIsNoPythonIsTakenForTheOneThatOnerankWasBuiltFor) {
  have_cmake(true);
  const std::string python = python_with(kOther);
  const ProgramResult result = run({"exec", "--", script("start.sh", python + "\nexit 1\n")});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error, HasSubstr("given as its Python and a script"));
  EXPECT_TRUE(cmake_calls().empty());
}

TEST_F(ExecTorch, AreListed) {
  const ProgramResult result = run({"list", "torch"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.output, AllOf(HasSubstr("2.11.0"), HasSubstr("2.12.1")));
}

}  // namespace
}  // namespace sim
