// What an expression of Python is, as far as its file says it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/json_value.h"

namespace sim {

struct PythonItem;
struct PythonModule;
struct PythonStatement;

/// Lists, dicts and objects are shared by all that hold them, as in Python.
struct PythonValue {
  enum class Kind {
    kConstant,  ///< None, True, a number, a text
    kSymbol,    ///< of a module that is not read, by its name: torch.bfloat16
    kList,      ///< also a tuple
    kDict,
    kObject,  ///< what a call gives that is not read: its fields, and the name of what was called
    kFunction,
    kClass,
    kImported,  ///< from another file, and not looked up yet: "module:name"
    kUnknown,   ///< nobody knows without running it; text says where it comes from
  };
  Kind kind = Kind::kUnknown;
  std::string text = {};
  estimator::JsonValue constant = {};
  std::shared_ptr<std::vector<PythonItem>> items = {};
  const PythonStatement* definition = nullptr;  ///< of a function or class
  PythonModule* module = nullptr;               ///< that has the definition

  bool is(Kind other) const { return kind == other; }
  bool is_none() const;
  bool is_text() const;
  bool has_items() const { return items != nullptr; }
  std::string as_text() const;  ///< "" for what is no text
};

struct PythonItem {
  std::string name;  ///< of a field; of a dict, its key as text
  PythonValue value;
  std::string place = {};  ///< "llama3.py:40"
  PythonValue key = {};    ///< of a dict
  bool is_known = false;   ///< what is known of the object without the file saying it
};

/// The positional arguments of an object's call, as a list.
inline constexpr const char* kPythonArguments = "_args_";

PythonValue python_constant(estimator::JsonValue value);
PythonValue python_symbol(std::string name);
PythonValue python_unknown(std::string text);
PythonValue python_list(std::vector<PythonValue> values);
PythonValue python_object(std::string called);
PythonValue python_dict();

/// Null where it has no such field or key.
PythonItem* find_python_item(const PythonValue& value, std::string_view name);
PythonItem* find_python_key(const PythonValue& dict, const PythonValue& key);
/// A positional argument of an object's call; null where it has none.
const PythonValue* python_argument(const PythonValue& object, std::size_t position);
void set_python_item(const PythonValue& object,
                     std::string_view name,
                     PythonValue value,
                     std::string place);

/// Copies with all that they hold.
PythonValue deep_python_copy(const PythonValue& value);

/// Whether it is an object in place of what a function gives that is not followed, and not one of a
/// class: names of classes begin with a capital letter.
bool is_python_result(const PythonValue& value);

/// Whether it counts as true in a condition; nothing where nobody knows.
std::optional<bool> python_truth(const PythonValue& value);
std::optional<bool> python_equal(const PythonValue& left, const PythonValue& right);

/// left sign right; kUnknown where it is not known. "and", "or" are not among the signs.
PythonValue python_binary(const std::string& sign,
                          const PythonValue& left,
                          const PythonValue& right);

}  // namespace sim
