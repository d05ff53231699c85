// What PyTorch's symmetric memory hears of absent ranks when a group shares its memory.
//
// Each rank sets a record of itself in the group's store and reads those of the others
// ("CUDASymmetricMemory/NUMBER/RANK"): of its memory, which all have alike, with its device and its
// process, or a flag. The descriptors of the memory then travel over sockets that are named by
// processes. An absent rank is taken to say what this one says, from another device of the same
// machine: so descriptors travel from this process to itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sim {

/// This rank has set such a key; any other one is ignored. Thread-safe.
void note_own_record(const std::string& key, const std::vector<uint8_t>& value);

/// What an absent rank is taken to have set under `key`; empty for any other key. Throws c10d's
/// DistBackendError if the ranks of the group lie on several machines, where memory cannot be
/// shared over file descriptors. Thread-safe.
std::optional<std::vector<uint8_t>> record_of_absent_rank(const std::string& key);

}  // namespace sim
