// The words by which programs turn a switch on and off.
#pragma once

#include <string>
#include <vector>

#include "sim/cli/import/key_table.h"
#include "sim/cli/import/source_entry.h"

namespace sim {

/// string_to_bool() in transformers' hf_argparser.py.
SwitchWords trainer_words();
/// str_to_bool() in accelerate's utils/environment.py.
SwitchWords accelerate_words();

/// Whether the table has a row for the key that holds for the value true or for false.
bool is_switch(const KeyTable& table, const std::string& key);

/// Spells the values of switches as true and false, by the words of the table. Throws UserError for
/// a value that is none of them, where a key is a switch and nothing else.
void spell_switches(std::vector<SourceEntry>& entries, const KeyTable& table);

}  // namespace sim
