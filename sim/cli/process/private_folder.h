// Folders whose content is executed or trusted, so that no other user may write to them.
#pragma once

#include <filesystem>

#include "sim/cli/process/environment.h"

namespace sim {

/// The folder for caches of this user's programs: XDG_CACHE_HOME, or .cache in HOME or in the home
/// folder that the system knows. Throws UserError (this machine lacks something) when there is
/// none, because a folder that all users share, such as /tmp, may have content of another user.
std::filesystem::path user_cache_folder(const Environment& environment);

/// Makes `folder` and its missing parents, for this user alone. Throws UserError (this machine
/// lacks something) when this fails, or when the folder or its parent `outermost` is a symbolic
/// link, belongs to another user, or can be written by other users.
void make_private_folder(const std::filesystem::path& folder,
                         const std::filesystem::path& outermost);

}  // namespace sim
