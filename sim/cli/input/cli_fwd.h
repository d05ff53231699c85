// Forward declarations of CLI11's types, for headers that only pass them on. Code that adds options
// or asks for them includes <CLI/CLI.hpp>.
#pragma once

namespace CLI {
class App;
class Option;
}  // namespace CLI
