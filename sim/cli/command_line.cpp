#include "sim/cli/command_line.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>

#include "estimator/base/document.h"
#include "estimator/base/error_document.h"
#include "estimator/base/field_words.h"
#include "sim/cli/commands/commands.h"
#include "sim/cli/commands/help_text.h"
#include "sim/cli/commands/named_files.h"
#include "sim/cli/input/flag_names.h"
#include "sim/cli/process/output.h"
#include "sim/cli/process/terminal.h"
#include "sim/cli/values/plan_flag_table.h"

namespace sim {
namespace {

using estimator::ExitCode;
using estimator::UserError;

constexpr const char* kDescription =
    R"(Run one rank, know the cluster: memory, time and cost of a training job, from
one executed rank.

Examples:
  onerank estimate llama3-405b-16384xh100
  onerank check --model llama3-8b --gpu h100-sxm --nodes 1 --tp 2 --zero-stage 1
  onerank sweep --model llama3-8b --gpu h100-sxm --nodes 1 --tp 1,2,4 --seq-length 4k,8k
  WORLD_SIZE=1024 RANK=17 onerank run --model llama3-70b --tp 8 --pp 4 --gpu h100-sxm
  onerank comm all_reduce --gpu h100-sxm --nodes 4 -b 1M -e 8G
  onerank exec --gpu h100-sxm --world-size 64 --rank 17 --steps 2 -- python train.py
)";

constexpr const char* kFooter =
    "Exit codes: 0 fits, equal or done, 1 does not fit, 2 bad input, 3 this machine lacks "
    "something "
    "or no verdict is possible, 4 a verification found a difference, 70 a bug in Onerank, 130 "
    "interrupted. Data goes to standard output, everything else to standard error.";

/// The columns of a help that no terminal shows.
constexpr int kHelpColumns = 80;

std::vector<std::string> subcommand_names(const CLI::App& root) {
  std::vector<std::string> names;
  for (const CLI::App* app : root.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(app->get_name());
  }
  return names;
}

std::vector<std::string> flag_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string help_hint(const CLI::App& app) {
  return fmt::format("see {} --help", app.get_parent() ? "onerank " + app.get_name() : "onerank");
}

[[noreturn]] void refuse_flag(const std::string& argument, const CLI::App& app) {
  const std::string name = argument.substr(0, argument.find('='));
  if (const estimator::FieldWord* word = estimator::find_field_word(name)) {
    throw UserError({.what = word->what, .where = argument, .help = word->instead});
  }
  const std::string nearest = estimator::nearest_name(name, flag_names(app));
  throw UserError(
      {.what = "unknown flag",
       .where = argument,
       .help = nearest.empty() ? help_hint(app) : fmt::format("did you mean {}?", nearest)});
}

/// What people type as a subcommand, and the flag that does it.
struct WordOfFlag {
  const char* word;
  const char* flag;
};
constexpr WordOfFlag kWordsOfFlags[] = {{"help", "--help"}, {"version", "--version"}};

[[noreturn]] void refuse_subcommand(const std::string& argument, const CLI::App& root) {
  std::string help = estimator::suggestion(argument, subcommand_names(root));
  for (const WordOfFlag& known : kWordsOfFlags) {
    if (argument == known.word) help = fmt::format("write onerank {}", known.flag);
  }
  throw UserError({.what = "unknown subcommand",
                   .where = argument.empty() ? "it is an empty argument" : argument,
                   .help = std::move(help)});
}

/// What CLI11 could not place; it would only say that it was not expected.
void refuse_unknown(const CLI::App& app, const CLI::App& root) {
  for (const std::string& argument : app.remaining()) {
    if (argument == "--") continue;  // what follows it is no flag
    if (argument.size() > 1 && argument[0] == '-') refuse_flag(argument, app);
    if (&app == &root) refuse_subcommand(argument, root);
    throw UserError({.what = "an argument too many",
                     .where = argument,
                     .help = app.get_name() == "estimate"
                                 ? "`onerank check` takes several plans, and `onerank diff` two"
                                 : help_hint(app)});
  }
}

bool is_plan_flag(const CLI::Option& option) {
  const std::vector<std::string>& names = option.get_lnames();
  return !names.empty() && find_plan_flag("--" + names.front()) != nullptr;
}

[[noreturn]] void refuse_empty(const std::string& name) {
  throw UserError({.what = "an argument is empty",
                   .where = name,
                   .help = "leave it out, or give it a value; a variable of the shell may not be "
                           "set"});
}

/// The name of the flag that stands in the arguments.
std::string name_as_typed(const CLI::Option& option, const std::vector<std::string>& arguments) {
  for (const std::string& name : option.get_lnames()) {
    if (std::find(arguments.begin(), arguments.end(), "--" + name) != arguments.end()) {
      return "--" + name;
    }
  }
  return option.get_name();
}

/// An empty text would count as not given. After "--rank=", CLI11 takes the next argument. Plan
/// flags read their own texts, and some of them may be empty.
void refuse_empty_values(const CLI::App& app, const std::vector<std::string>& arguments) {
  for (const std::string& name : flag_names(app)) {
    if (std::find(arguments.begin(), arguments.end(), name + "=") != arguments.end()) {
      refuse_empty(name + "=");
    }
  }
  for (const CLI::Option* option : app.get_options()) {
    const bool is_empty = option->get_items_expected_max() == 1 && option->count() > 0 &&
                          option->results().back().empty();
    if (is_empty && !is_plan_flag(*option)) refuse_empty(name_as_typed(*option, arguments));
  }
}

/// What CLI11's errors mean here, where options are texts and only switches are converted.
struct ParseFailure {
  const char* cli11_name;
  const char* what;
};
constexpr ParseFailure kParseFailures[] = {
    {"ArgumentMismatch", "a flag is given too often, or without its value"},
    {"ConversionError", "a flag that takes no value has one"},
    {"ExcludesError", "two flags exclude each other"},
    {"RequiredError", "an argument is missing"},
};

/// `app` is the one whose part of the command line it was.
UserError parse_error(const CLI::ParseError& error, const CLI::App& app) {
  const char* what = "the command line cannot be understood";
  for (const ParseFailure& failure : kParseFailures) {
    if (error.get_name() == failure.cli11_name) what = failure.what;
  }
  return UserError({.what = what, .where = error.what(), .help = help_hint(app)});
}

/// The subcommand that the arguments name. Throws CLI::Success for --help and --version.
const Command& parse(CLI::App& root,
                     const std::vector<Command>& commands,
                     const std::vector<std::string>& own_arguments,
                     int argc,
                     const char* const* argv) {
  try {
    root.parse(argc, argv);
  } catch (const CLI::Success&) {
    throw;
  } catch (const CLI::ParseError& error) {
    const std::vector<CLI::App*> begun = root.get_subcommands();
    throw parse_error(error, begun.empty() ? root : *begun.front());
  }
  for (const Command& command : commands) {
    if (!command.app->parsed()) continue;
    // First: what comes after an unknown flag of its own is left to the root.
    refuse_unknown(*command.app, root);
    refuse_unknown(root, root);
    refuse_empty_values(*command.app, own_arguments);
    refuse_files_named_twice(*command.app);
    return command;
  }
  refuse_unknown(root, root);
  throw UserError({.what = "no subcommand is given",
                   .where = fmt::format("known are {}", fmt::join(subcommand_names(root), ", ")),
                   .help = help_hint(root)});
}

/// The arguments up to `--`, behind which stands a program of the user's, with arguments of its
/// own.
std::vector<std::string> own_arguments(int argc, const char* const* argv) {
  std::vector<std::string> arguments;
  for (int i = 1; i < argc && argv[i] != std::string_view("--"); ++i) {
    require_utf8(argv[i], "an argument");
    arguments.emplace_back(argv[i]);
  }
  return arguments;
}

bool wants_json(const std::vector<std::string>& arguments) {
  return std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
}

/// The help that was asked for.
std::string help_of_parsed(const CLI::App& root) {
  const auto columns = static_cast<std::size_t>(output_columns(kHelpColumns));
  const std::vector<CLI::App*> begun = root.get_subcommands();
  const CLI::App& app = begun.empty() ? root : *begun.front();
  const bool all = app.get_help_all_ptr()->count() > 0;
  if (&app != &root) return all ? full_help(app, columns) : short_help(app, columns);
  std::string text = root_help(root, columns);
  if (!all) return text;
  for (const CLI::App* one : root.get_subcommands([](const CLI::App*) { return true; })) {
    text += fmt::format("\n\n{:=<{}}\n", one->get_name() + " ", columns) + full_help(*one, columns);
  }
  return text;
}

struct NamedCommand {
  const char* name;
  Command (*add_to)(CLI::App& root);
  bool describes_all = false;  ///< it prints the options of every subcommand
};
/// In the order of the help.
constexpr NamedCommand kCommands[] = {{"estimate", add_estimate_command},
                                      {"check", add_check_command},
                                      {"search", add_search_command},
                                      {"sweep", add_sweep_command},
                                      {"diff", add_diff_command},
                                      {"run", add_run_command},
                                      {"roofline", add_roofline_command},
                                      {"calibrate", add_calibrate_command},
                                      {"verify", add_verify_command},
                                      {"memory", add_memory_command},
                                      {"allocators", add_allocators_command},
                                      {"comm", add_comm_command},
                                      {"exec", add_exec_command},
                                      {"import", add_import_command},
                                      {"schema", add_schema_command},
                                      {"list", add_list_command},
                                      {"completion", add_completion_command, true},
                                      {"man", add_man_command, true}};

/// Adds the subcommand that the first argument names, or all of them if it names none. The options
/// of all take more time to register than most refusals take.
std::vector<Command> add_commands(CLI::App& root, const std::vector<std::string>& arguments) {
  const std::string first = arguments.empty() ? "" : arguments.front();
  for (const NamedCommand& command : kCommands) {
    if (first == command.name && !command.describes_all) return {command.add_to(root)};
  }
  std::vector<Command> commands;
  for (const NamedCommand& command : kCommands) commands.push_back(command.add_to(root));
  return commands;
}

ExitCode run_dashed_command_line(int argc,
                                 const char* const* argv,
                                 const Environment& environment) {
  const std::vector<std::string> arguments = own_arguments(argc, argv);
  CLI::App root(kDescription, "onerank");
  root.footer(kFooter);
  root.set_version_flag("-V,--version", std::string("onerank ") + ONERANK_VERSION);
  root.set_help_flag("-h,--help", "what people need first, with examples");
  root.set_help_all_flag("--help-all", "all options");
  root.require_subcommand(0, 1);
  root.allow_extras();
  const std::vector<Command> commands = add_commands(root, arguments);
  for (const Command& command : commands) command.app->allow_extras();
  try {
    return parse(root, commands, arguments, argc, argv).run(environment);
  } catch (const UserError& error) {
    const UserError told(as_typed(error.problems(), arguments), error.exit_code());
    if (wants_json(arguments))
      write_to_standard_output(estimator::document_text(estimator::error_document(told)));
    throw told;
  } catch (const CLI::CallForVersion& version) {
    write_to_standard_output(std::string(version.what()) + "\n");
  } catch (const CLI::Success&) {
    write_to_standard_output(help_of_parsed(root));
  }
  return ExitCode::kDone;
}

/// A flag as it is known, where it was typed with underscores, as Python's programs have it.
std::string with_dashes(const std::string& argument) {
  constexpr std::array<std::string_view, 1> kOtherFlags = {"--world-size"};
  const std::size_t end = std::min(argument.find('='), argument.size());
  std::string name = argument.substr(0, end);
  std::replace(name.begin(), name.end(), '_', '-');
  const bool changes = argument.starts_with("--") && name != argument.substr(0, end);
  const bool is_known =
      find_plan_flag(name) != nullptr ||
      std::find(kOtherFlags.begin(), kOtherFlags.end(), name) != kOtherFlags.end();
  return changes && is_known ? name + argument.substr(end) : argument;
}

/// Gives a flag that stands without its value the one that is meant, where no word follows it.
void complete_bare_flags(std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    const bool is_bare = i + 1 == arguments.size() || arguments[i + 1].starts_with("-");
    if (is_bare && arguments[i] == "--advice") arguments[i] = "--advice=always";
  }
}

}  // namespace

ExitCode run_command_line(int argc, const char* const* argv, const Environment& environment) {
  std::vector<std::string> with_dashes_only(argv, argv + argc);
  for (std::string& argument : with_dashes_only) {
    if (argument == "--") break;  // the arguments of another program follow
    argument = with_dashes(argument);
  }
  complete_bare_flags(with_dashes_only);
  std::vector<const char*> dashed;
  dashed.reserve(with_dashes_only.size());
  for (const std::string& argument : with_dashes_only) dashed.push_back(argument.c_str());
  return run_dashed_command_line(argc, dashed.data(), environment);
}

}  // namespace sim
