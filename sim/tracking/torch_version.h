#pragma once

#include <string>

namespace sim {

/// The version of the torch that is loaded, "2.11.0".
std::string torch_version();

/// Throws UserError (this machine lacks something) when the loaded torch is not the version for
/// which Onerank was built, because class layouts and operators differ between versions.
void check_torch_version();

}  // namespace sim
