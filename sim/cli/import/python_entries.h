// The fields of an object of Python as entries.
#pragma once

#include <string>
#include <vector>

#include "sim/cli/import/python/python_value.h"
#include "sim/cli/import/source_entry.h"

namespace sim {

/// The class of an object, or what made it: "AutoBridge.from_hf_pretrained.get_model_config".
inline constexpr const char* kPythonClass = "_target_";

/// One entry for each field that the file says, with those of objects in it as "model.num-layers";
/// an object within these is its class's name. A symbol is its last name: bfloat16 of
/// torch.bfloat16.
std::vector<SourceEntry> entries_of_python(const PythonValue& object, const std::string& origin);

/// A constant, symbol or object as text; "" for a list and what is not known.
std::string python_text(const PythonValue& value);

}  // namespace sim
