// Work that is divided among threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace estimator {

/// Calls work(0) to work(count - 1) once each, up to `at_once` of them at the same time, and
/// returns when all have ended. Throws what one of them threw.
void for_each_in_parallel(std::size_t count,
                          int64_t at_once,
                          const std::function<void(std::size_t)>& work);

}  // namespace estimator
