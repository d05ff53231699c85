#include "sim/cli/command_line.h"

#include <fmt/format.h>

#include <algorithm>

#include "estimator/base/field_words.h"
#include "sim/cli/commands/commands.h"
#include "sim/cli/input/flag_names.h"
#include "sim/cli/process/output.h"
#include "sim/cli/values/plan_flag_table.h"

namespace sim {
namespace {

using estimator::ExitCode;
using estimator::UserError;

constexpr const char* kDescription =
    R"(Run one rank, know the cluster: memory, time and cost of a training job, from one executed rank.

Examples:
  onerank estimate scripts/plans/llama3-405b-16384xh100.json
  onerank check --model llama3-8b --gpu h100-sxm --nodes 1 --tp 2 --zero-stage 1
  onerank sweep --model llama3-8b --gpu h100-sxm --nodes 1 --tp 1,2,4 --seq-length 4k,8k
  WORLD_SIZE=1024 RANK=17 onerank run --model llama3-70b --tp 8 --pp 4 --gpu h100-sxm
  onerank comm all_reduce --gpu h100-sxm --nodes 4 -b 1M -e 8G
  onerank exec --gpu h100-sxm --world-size 64 --rank 17 --steps 2 -- python train.py
)";

constexpr const char* kFooter =
    R"(
Exit codes: 0 fits, equal or done, 1 does not fit, 2 bad input,
3 this machine lacks something or no verdict is possible,
4 a verification found a difference, 70 a bug in Onerank, 130 interrupted. Data goes to standard output, everything else to standard error.)";

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

std::string help_of(const CLI::App& app) {
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
       .help = nearest.empty() ? help_of(app) : fmt::format("did you mean {}?", nearest)});
}

/// What CLI11 could not place; it would only say that it was not expected.
void refuse_unknown(const CLI::App& app, const CLI::App& root) {
  for (const std::string& argument : app.remaining()) {
    if (argument == "--") continue;  // what follows it is no flag
    if (argument.size() > 1 && argument[0] == '-') refuse_flag(argument, app);
    if (&app == &root) {
      throw UserError({.what = "unknown subcommand",
                       .where = argument.empty() ? "it is an empty argument" : argument,
                       .help = estimator::suggestion(argument, subcommand_names(root))});
    }
    throw UserError({.what = "an argument too many", .where = argument, .help = help_of(app)});
  }
}

bool is_plan_flag(const CLI::Option& option) {
  for (const PlanFlagGroup& group : plan_flag_groups()) {
    for (const PlanFlag& flag : group.flags) {
      for (const std::string& name : flag.said.names) {
        if (option.check_name(name)) return true;
      }
    }
  }
  return false;
}

[[noreturn]] void refuse_empty(const std::string& name) {
  throw UserError({.what = "an argument is empty",
                   .where = name,
                   .help = "leave it out, or give it a value; a variable of the shell may not be "
                           "set"});
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
    if (is_empty && !is_plan_flag(*option)) refuse_empty(option->get_name());
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
  return UserError({.what = what, .where = error.what(), .help = help_of(app)});
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
    return command;
  }
  refuse_unknown(root, root);
  throw UserError({.what = "no subcommand is given",
                   .where = fmt::format("known are {}", fmt::join(subcommand_names(root), ", ")),
                   .help = help_of(root)});
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

ExitCode run_dashed_command_line(int argc,
                                 const char* const* argv,
                                 const Environment& environment) {
  const std::vector<std::string> arguments = own_arguments(argc, argv);
  CLI::App root(kDescription, "onerank");
  root.footer(kFooter);
  root.set_version_flag("--version", std::string("onerank ") + ONERANK_VERSION);
  root.require_subcommand(0, 1);
  root.allow_extras();
  const std::vector<Command> commands = {add_estimate_command(root),
                                         add_check_command(root),
                                         add_search_command(root),
                                         add_sweep_command(root),
                                         add_diff_command(root),
                                         add_run_command(root),
                                         add_roofline_command(root),
                                         add_calibrate_command(root),
                                         add_verify_command(root),
                                         add_memory_command(root),
                                         add_allocators_command(root),
                                         add_comm_command(root),
                                         add_exec_command(root),
                                         add_import_command(root),
                                         add_schema_command(root),
                                         add_list_command(root),
                                         add_completion_command(root),
                                         add_man_command(root)};
  for (const Command& command : commands) command.app->allow_extras();
  try {
    return parse(root, commands, arguments, argc, argv).run(environment);
  } catch (const UserError& error) {
    throw UserError(as_typed(error.problems(), arguments), error.exit_code());
  } catch (const CLI::CallForVersion& version) {
    write_to_standard_output(std::string(version.what()) + "\n");
  } catch (const CLI::Success&) {
    write_to_standard_output(root.help());
  }
  return ExitCode::kDone;
}

bool is_plan_flag(const std::string& name) {
  for (const PlanFlagGroup& group : plan_flag_groups()) {
    for (const PlanFlag& flag : group.flags) {
      if (std::find(flag.said.names.begin(), flag.said.names.end(), name) !=
          flag.said.names.end()) {
        return true;
      }
    }
  }
  return false;
}

/// A plan's flag as it is known, where it was typed with underscores, as Python's programs have it.
std::string with_dashes(const std::string& argument) {
  const std::size_t end = std::min(argument.find('='), argument.size());
  std::string name = argument.substr(0, end);
  std::replace(name.begin(), name.end(), '_', '-');
  const bool changes = argument.starts_with("--") && name != argument.substr(0, end);
  return changes && is_plan_flag(name) ? name + argument.substr(end) : argument;
}

}  // namespace

ExitCode run_command_line(int argc, const char* const* argv, const Environment& environment) {
  std::vector<std::string> with_dashes_only(argv, argv + argc);
  for (std::string& argument : with_dashes_only) {
    if (argument == "--") break;  // the arguments of another program follow
    argument = with_dashes(argument);
  }
  std::vector<const char*> dashed;
  dashed.reserve(with_dashes_only.size());
  for (const std::string& argument : with_dashes_only) dashed.push_back(argument.c_str());
  return run_dashed_command_line(argc, dashed.data(), environment);
}

}  // namespace sim
