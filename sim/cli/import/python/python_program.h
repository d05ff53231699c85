// Reads Python files as data: a function of configurations is followed statement by statement, with
// the functions and classes of the files that it imports. Nothing of it is run. What it cannot
// follow is unknown, and what a branch does whose condition is unknown is unknown, too.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/cli/import/python/python_syntax.h"
#include "sim/cli/import/python/python_value.h"

namespace sim {

struct PythonFile {
  std::string path;
  std::string text;
};

/// A file as Python imports it: its statements, and its names once they are looked up.
struct PythonModule {
  std::string path;
  std::string origin;  ///< the file's name, for places
  std::string name;    ///< as it is imported: "megatron.bridge.training.config"
  std::vector<PythonStatement> statements;
  std::map<std::string, PythonValue> names;
  bool is_executed = false;
};

/// The file of a module "a.b.c" or ".common" that the file at `path` imports; nothing if there is
/// none.
using PythonFinder =
    std::function<std::optional<PythonFile>(const std::string& path, const std::string& module)>;

struct PythonReading {
  PythonFinder find = {};
  /// Functions that are not followed, by name: a call of one is an object.
  std::vector<std::string> not_followed = {};
  /// Is told of each object that a call gives, and may add what is known of it.
  std::function<void(PythonValue&)> on_object = {};
};

class PythonProgram {
 public:
  /// Throws UserError for text that is no Python.
  PythonProgram(PythonFile file, PythonReading reading);
  ~PythonProgram();
  PythonProgram(const PythonProgram&) = delete;
  PythonProgram& operator=(const PythonProgram&) = delete;

  /// The functions of the file that can be called without arguments.
  std::vector<std::string> functions() const;

  /// What a function gives that is called without arguments. Throws UserError for one that raises
  /// an exception, and for endless work.
  PythonValue call(const std::string& function);

  /// A function of a module that the file may import; kUnknown where there is none.
  PythonValue call(const std::string& module, const std::string& function);

  /// Where a branch calls functions under a condition that nobody knows, which is left out.
  const std::vector<std::string>& undecided() const;

 private:
  class Interpreter;
  std::unique_ptr<Interpreter> interpreter_;
};

}  // namespace sim
