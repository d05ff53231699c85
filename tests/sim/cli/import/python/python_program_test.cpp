// Files of Python that are followed as data.
#include <gmock/gmock.h>

#include <map>

#include "estimator/base/errors.h"
#include "estimator/base/fields.h"
#include "sim/cli/import/python/python_program.h"
#include "sim/cli/import/python_entries.h"

namespace sim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The program of a text beside other modules.
PythonProgram program_of(const std::string& text,
                         const std::map<std::string, std::string>& modules = {}) {
  PythonReading reading;
  reading.find = [modules](const std::string&,
                           const std::string& module) -> std::optional<PythonFile> {
    const auto found = modules.find(module);
    if (found == modules.end()) return std::nullopt;
    return PythonFile{module + ".py", found->second};
  };
  return PythonProgram({"main.py", text}, reading);
}

/// "model.layers=4; model.dtype=bfloat16" of what f() gives.
std::string fields_of(const std::string& text,
                      const std::map<std::string, std::string>& modules = {}) {
  PythonProgram program = program_of(text, modules);
  std::string fields;
  for (const SourceEntry& entry : entries_of_python(program.call("f"), "main.py")) {
    fields += entry.key + (entry.is_unknown ? "?" : "=");
    for (const std::string& value : entry.values)
      fields += (fields.ends_with('=') || fields.ends_with('?') ? "" : ",") + value;
    fields += "; ";
  }
  return fields;
}

std::string error_of(const std::string& text) {
  try {
    program_of(text).call("f");
  } catch (const estimator::UserError& error) {
    return error.what();
  }
  return "";
}

TEST(PythonProgram, FollowsAssignmentsToFieldsAndTheFunctionsThatMakeThem) {
  EXPECT_EQ(
      fields_of(R"(
def base():
    cfg = Config(train=Train(steps=50_000, lr=3e-4))
    cfg.model = Provider("name")
    return cfg

def f() -> Config:
    """A text: with = signs."""
    cfg = base()
    cfg.model.layers = 2 * (3 + 1)  # a comment
    cfg.model.dtype = torch.bfloat16
    cfg.model.modules = ["a", "b"]
    cfg.train.steps = None
    return cfg
)"),
      "train.steps=; train.lr=0.0003; train.-target-=Train; model.-args-=name; model.layers=8; "
      "model.dtype=bfloat16; model.modules=a,b; model.-target-=Provider; ");
}

TEST(PythonProgram, SharesObjectsAsPythonDoes) {
  EXPECT_EQ(fields_of(R"(
def widen(model, by=2):
    model.width = model.width * by
def f():
    cfg = Config(model=Model(width=8))
    widen(cfg.model)
    other = cfg.model
    other.depth = 3
    return cfg
)"),
            "model.width=16; model.depth=3; model.-target-=Model; ");
}

TEST(PythonProgram, FollowsImportsAndDefaultsOfDataclasses) {
  const std::map<std::string, std::string> modules = {
      {"lib.base",
       "from .parts import Part as P, SIZE\n@dataclass\nclass Base:\n    size: int = SIZE\n    "
       "open: int\n"},
      {".parts", "SIZE = 4\nclass Part:\n    pass\n"}};
  EXPECT_EQ(fields_of(R"(
from lib.base import Base as B
class Own(B):
    name: str = "x"
def f():
    base = B(open=1)
    own = Own()
    return Config(size=base.size, own=own.size, name=own.name)
)",
                      modules),
            "size=4; own=4; name=x; ");
}

TEST(PythonProgram, CopiesWithReplaceAndDeepcopy) {
  EXPECT_EQ(fields_of(R"(
from dataclasses import replace
from copy import deepcopy
BASE = Config(model=Model(tp=1, pp=2), gbs=64)
def f():
    other = deepcopy(BASE)
    other.model.tp = 8
    return replace(BASE, gbs=128, model=replace(BASE.model, pp=other.model.tp))
)"),
            "model.tp=1; model.pp=8; model.-target-=Model; gbs=128; ");
}

TEST(PythonProgram, TakesTheBranchOfAConditionThatIsKnown) {
  EXPECT_EQ(fields_of(R"(
LAYOUTS = {(4, 1): [["embedding"] + ["decoder"] * 2, ["loss"]], (8, 2): None}
def f():
    cfg = Config(a=0)
    layout = LAYOUTS[(4, 1)]
    if (2, 2) not in LAYOUTS and layout is not None:
        cfg.parts = len(layout[0])
    elif unknown():
        cfg.parts = 7
    cfg.b = 5 if cfg.a else 6
    return cfg
)"),
            "a=0; parts=3; b=6; ");
}

TEST(PythonProgram, LeavesUnknownWhatABranchDoesThatNobodyCanDecide) {
  PythonProgram program = program_of(R"(
def f():
    cfg = Config(a=1, b=2)
    if torch.cuda.is_available():
        cfg.a = 3
        change(cfg)
    return cfg
)");
  const std::vector<SourceEntry> entries = entries_of_python(program.call("f"), "main.py");
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_TRUE(entries[0].is_unknown);
  EXPECT_FALSE(entries[1].is_unknown);
  EXPECT_THAT(program.undecided(), ElementsAre("main.py:6"));
}

TEST(PythonProgram, HandlesAnExceptionAsTheFileDoes) {
  EXPECT_EQ(fields_of(R"(
def layout(stages):
    if stages != 4:
        raise ValueError(f"no layout of {stages}")
    return "E|t|t|L"
def f():
    cfg = Config(layout=None)
    try:
        cfg.layout = layout(8)
    except ValueError:
        cfg.layout = "none"
    return cfg
)"),
            "layout=none; ");
  EXPECT_THAT(error_of("def f():\n    raise ValueError('x')\n"), HasSubstr("raises an exception"));
}

TEST(PythonProgram, NamesTheFunctionsThatNeedNoArguments) {
  EXPECT_THAT(
      program_of("def a(): pass\ndef b(x): pass\ndef c(x=1, *, y=2, **z): pass\nclass D: pass\n")
          .functions(),
      ElementsAre("a", "c"));
}

TEST(PythonProgram, EndsWhereAFileDoesTooMuch) {
  EXPECT_THAT(error_of("def f():\n    return f()\n"), HasSubstr("too deeply"));
  EXPECT_THAT(error_of("def f():\n    for i in range(90000):\n        for j in range(90000):\n     "
                       "       x = i\n"),
              HasSubstr("too much"));
}

TEST(PythonProgram, SaysWhereATextIsNoPython) {
  EXPECT_THAT(error_of("def f():\n    x = (1,\n"), HasSubstr("no Python"));
  EXPECT_THAT(error_of("def f():\n    x = 'a\n"), HasSubstr("line 2: a string has no end"));
  EXPECT_THAT(error_of("x = " + std::string(5000, '(')), HasSubstr("nested too deeply"));
  EXPECT_THAT(error_of("x = " + std::string(5000, '-') + "1"), HasSubstr("nested too deeply"));
}

TEST(PythonProgram, ReadsWhatItCannotFollowWithoutAnError) {
  EXPECT_EQ(fields_of(R"(
import os, sys
from typing import *
with open("x") as file:
    text = file.read()
async def g(*args, a: dict[str, int] = {}, **kwargs) -> None: ...
names = {k: v for k, v in pairs if k and v for z in v}
first, *rest = [lambda x: x + 1, *names]
while True:
    break
@decorated(a=1)
class A(B, metaclass=C):
    x: int = 3; y = 4
assert x in [
    1, 2
], f"text {names}"
if (n := len(names)) > 1: total = 3
def f():
    a, b = (1, 2)
    c = d = a
    c += 4
    return Config(a=a, b=b, c=c, d=d, e=-a, f=not b, g=1 < 2, h="x" in "xyz", i=[1, 2][-1])
)"),
            "a=1; b=2; c=5; d=1; e=-1; f=false; g=true; h=true; i=2; ");
}

}  // namespace
}  // namespace sim
