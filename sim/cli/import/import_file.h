// Finds out by its content what a file is that is no plan, and reads it.
#pragma once

#include <optional>
#include <string>

#include "sim/cli/import/imported_plan.h"

namespace sim {

/// Stands for the path of what comes from standard input.
inline constexpr const char* kStandardInput = "standard input";

/// The plan that the text means, if it is of a program that Onerank reads; nothing if it may be a
/// plan. `path` is the file's, beside which scripts that it sources are looked for. Throws
/// UserError for values that cannot be read.
///
/// `arguments` are those of a script, "7B 1 bf16": nothing where they are not known. Throws
/// UserError for a file that has none. `function` is the one that is meant of a file with several
/// configurations; "" where none is named.
std::optional<ImportedPlan> import_text(const std::string& text,
                                        const std::string& path,
                                        const std::optional<std::string>& arguments = std::nullopt,
                                        const std::string& function = "");

}  // namespace sim
