// The programs around transformers' Trainer, what starts them, and what their keys mean.
#pragma once

#include <string>
#include <vector>

#include "sim/cli/import/key_table.h"
#include "sim/cli/import/training_command.h"

namespace sim {

struct TrainerProgram {
  std::string program;
  std::vector<std::string> commands;
  std::vector<std::string> marks;
  std::string technique;
  bool alone = false;
  bool starts_ranks = false;
};
template <class Visitor>
void visit_fields(Visitor& visit, TrainerProgram& row) {
  visit("program", row.program, "its name");
  visit("commands",
        row.commands,
        "patterns of the words that start it; of several words each is a pattern");
  visit("marks",
        row.marks,
        "a file of its arguments has all keys of one of these, which are divided by blanks");
  visit("technique", row.technique, "what it does, if that is not modelled");
  visit("alone", row.alone, "its words alone tell it, without its arguments");
  visit("starts_ranks", row.starts_ranks, "it starts a rank for each GPU by itself");
}

/// The program that the command starts; a Python file that no row names is one of transformers.
const TrainerProgram* trainer_program_of(const TrainingCommand& command);
/// Finds the words of trainer programs, or a Python file.
ProgramWords trainer_program_words(const ShellCommand& command);
/// The program whose arguments these are; null if there is none.
const TrainerProgram* trainer_program_of(const std::vector<SourceEntry>& entries);

/// The keys of a program and of transformers, which all of them have.
KeyTable trainer_table(const std::string& program);

}  // namespace sim
