// Folders whose content is run or believed, so that nobody else may write to them.
#pragma once

#include <filesystem>

#include "sim/cli/process/environment.h"

namespace sim {

/// Where this user's programs keep what they can make again: XDG_CACHE_HOME, or .cache in HOME, or
/// in the home that the system knows. Throws UserError (this machine lacks something) when there is
/// none: a folder that everybody knows, such as /tmp, may be somebody else's.
std::filesystem::path user_cache_folder(const Environment& environment);

/// Makes `folder`, and those above it, for this user alone. Throws UserError (this machine lacks
/// something) when it cannot, or when the folder or `outermost` above it is a link, another user's,
/// or one that others may write to.
void make_private_folder(const std::filesystem::path& folder,
                         const std::filesystem::path& outermost);

}  // namespace sim
