// Arguments of transformers' Trainer as entries with one spelling.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/cli/import/source_entry.h"

namespace sim {

/// Makes of True true, of --no_x the value false for x, of JSON in a value its keys
/// ("gradient-checkpointing-kwargs.use-reentrant"), and of --fsdp "full_shard offload" the keys
/// fsdp.full_shard and fsdp.offload. Keys without a value (null) are left out.
std::vector<SourceEntry> trainer_entries(std::vector<SourceEntry> entries);

/// Takes the entry of the key, and those of the keys in it ("deepspeed.*"), out of the list.
std::vector<SourceEntry> take_entries(const std::string& key, std::vector<SourceEntry>& entries);

/// The arguments of `accelerate launch` as the keys of its configuration.
std::vector<SourceEntry> accelerate_entries(const std::vector<SourceEntry>& launcher);

}  // namespace sim
