// What a shell tests in [[ ... ]] and in [ ... ].
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cli/import/shell/shell_expansion.h"
#include "sim/cli/import/shell/shell_script.h"

namespace sim {

/// What a test asks of: values of variables, and which scripts there are.
struct TestSubject {
  ShellExpansion& expansion;
  const ShellVariables& variables;
  const ScriptFinder& find_script;
};

/// Whether the text between [[ and ]] holds. Nothing where that is not known: files, patterns of
/// =~, values that nobody knows. Variables that nobody sets are empty.
std::optional<bool> double_bracket_holds(std::string_view text, TestSubject subject);

/// The same for the raw words of [ ... ] or test, without the brackets.
std::optional<bool> bracket_holds(const std::vector<std::string>& words, TestSubject subject);

/// Whether a text matches a shell's pattern. Long texts are compared as they are: a pattern takes
/// the product of both lengths.
bool matches_shell_pattern(const std::string& text, const std::string& pattern);

}  // namespace sim
