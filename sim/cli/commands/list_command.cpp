#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <memory>

#include "estimator/base/document.h"
#include "estimator/base/errors.h"
#include "estimator/base/units.h"
#include "estimator/hardware/hardware.h"
#include "estimator/plan/frameworks.h"
#include "estimator/plan/model_config.h"
#include "sim/cli/commands/commands.h"
#include "sim/cli/commands/list_documents.h"
#include "sim/cli/commands/named_choice.h"
#include "sim/cli/commands/report_output.h"
#include "sim/cli/input/table_format_flag.h"
#include "sim/cli/process/interrupts.h"
#include "sim/cli/process/output.h"
#include "sim/cli/report/table.h"
#include "sim/cli/torch/torch_check.h"

namespace sim {
namespace {

using estimator::ExitCode;
using estimator::with_commas;

struct ListOptions {
  std::string what;
  TableFormatFlag format;
  std::string checked_python;
};

/// A rate in units of `unit` per second; "-" for none.
std::string rate(std::optional<double> per_second, double unit) {
  return per_second ? fmt::format("{:.4g}", *per_second / unit) : "-";
}

Table gpu_table() {
  constexpr double kTera = 1e12;
  Table table({{"name", Align::kLeft},
               {"CUDA's name", Align::kLeft},
               {"capability"},
               {"GiB"},
               {"TB/s"},
               {"bf16 TFLOP/s"},
               {"intra link", Align::kLeft},
               {"inter link", Align::kLeft},
               {"also", Align::kLeft}});
  for (const estimator::Gpu& gpu : estimator::gpus()) {
    table.add_row({gpu.id,
                   gpu.cuda_name,
                   gpu.compute_capability,
                   fmt::format("{:.2f}", static_cast<double>(gpu.memory_bytes) / estimator::kGiB),
                   rate(gpu.memory_bandwidth_bytes_per_second, kTera),
                   rate(gpu.peak_flops_per_second.bf16, kTera),
                   gpu.default_intra_link,
                   gpu.default_inter_link,
                   fmt::format("{}", fmt::join(gpu.aliases, ", "))});
  }
  return table;
}

Table model_table() {
  Table table({{"name", Align::kLeft},
               {"parameters"},
               {"layers"},
               {"hidden"},
               {"heads"},
               {"key/value heads"},
               {"MLP"},
               {"vocabulary"},
               {"positions"},
               {"also", Align::kLeft}});
  for (const estimator::ModelPreset& preset : estimator::model_presets()) {
    const estimator::ModelConfig& model = preset.config;
    table.add_row({preset.name,
                   with_commas(preset.parameters),
                   std::to_string(model.num_layers),
                   with_commas(model.hidden_size),
                   std::to_string(model.num_attention_heads),
                   std::to_string(model.num_query_groups),
                   with_commas(model.ffn_hidden_size),
                   with_commas(model.vocab_size),
                   with_commas(model.max_position_embeddings),
                   fmt::format("{}", fmt::join(preset.aliases, ", "))});
  }
  return table;
}

Table link_table() {
  constexpr double kGiga = 1e9;
  Table table({{"name", Align::kLeft},
               {"kind", Align::kLeft},
               {"nominal GB/s"},
               {"achieved GB/s"},
               {"NVLS GB/s"},
               {"latency"}});
  for (const estimator::Link& link : estimator::links()) {
    table.add_row({link.id,
                   link.kind,
                   rate(link.nominal_bytes_per_second, kGiga),
                   rate(link.achieved_bytes_per_second, kGiga),
                   rate(link.nvls_bytes_per_second, kGiga),
                   estimator::format_duration(link.latency_seconds)});
  }
  return table;
}

Table framework_table() {
  Table table({{"framework", Align::kLeft}, {"stands for", Align::kLeft}, {"notes", Align::kLeft}});
  for (const estimator::FrameworkTraits& framework : estimator::frameworks()) {
    table.add_row({estimator::to_string(framework.framework),
                   framework.stands_for,
                   fmt::format("{}", fmt::join(framework.notes, "; "))});
  }
  return table;
}

/// Notes are too long for columns of text.
std::string framework_text() {
  std::string text;
  for (const estimator::FrameworkTraits& framework : estimator::frameworks()) {
    text +=
        fmt::format("{}: {}\n", estimator::to_string(framework.framework), framework.stands_for);
    for (const std::string& note : framework.notes) text += "  - " + note + "\n";
  }
  return text;
}

Table option_table() {
  Table table({{"key", Align::kLeft},
               {"type", Align::kLeft},
               {"default", Align::kLeft},
               {"flags", Align::kLeft}});
  for (const estimator::PlanOption& option : estimator::plan_options()) {
    std::vector<std::string> flags;
    for (const estimator::OptionFlag& flag : option.flags) {
      flags.insert(flags.end(), flag.names.begin(), flag.names.end());
    }
    table.add_row({option.path,
                   option.choices.empty() ? estimator::to_string(option.type)
                                          : fmt::format("{}", fmt::join(option.choices, "|")),
                   option.must_be_given ? "" : option.default_value.value_or("auto"),
                   fmt::format("{}", fmt::join(flags, " "))});
  }
  return table;
}

Table plan_table() {
  Table table({{"name", Align::kLeft},
               {"model", Align::kLeft},
               {"GPUs"},
               {"GPU", Align::kLeft},
               {"parallelism", Align::kLeft},
               {"framework", Align::kLeft}});
  for (const ExamplePlan& plan : example_plans()) {
    table.add_row({plan.name,
                   plan.model,
                   with_commas(plan.gpus),
                   plan.gpu,
                   plan.parallelism,
                   plan.framework});
  }
  return table;
}

Table torch_table() {
  Table table({{"torch", Align::kLeft},
               {"wheel", Align::kLeft},
               {"built for", Align::kLeft},
               {"tested", Align::kLeft}});
  for (const SupportedTorch& torch : supported_torch()) {
    table.add_row({torch.release, torch.wheel, torch.built_for ? "yes" : "no", torch.tested});
  }
  return table;
}

/// Exit code 3 when something is missing.
ExitCode check_listed_torch(const std::string& python, const Environment& environment) {
  const Interrupts interrupts;
  const TorchCheck check = check_torch(python, environment, interrupts);
  std::string text =
      fmt::format("torch {} of {}\n", check.torch.version, check.torch.folder.string());
  bool lacks = false;
  for (const TorchNeed& need : check.needs) {
    lacks = lacks || !need.is_met;
    text += fmt::format("  {:<4}{}\n", need.is_met ? "yes" : "no", need.what);
    if (!need.is_met) text += fmt::format("      help: {}\n", need.way_out);
  }
  write_to_standard_output(text);
  return lacks ? ExitCode::kMachineLacks : ExitCode::kDone;
}

/// The table, and the document that has its rows.
struct Listing {
  std::string name;
  Table (*table)();
  std::string (*json)();
  std::string (*text)() = nullptr;  ///< where it is not the table's
};

std::string text_of(const Listing& listing, const ReportStyle& style) {
  if (style.format == TableFormat::kJson) return listing.json();
  const bool has_text = style.format == TableFormat::kText && listing.text != nullptr;
  return has_text ? listing.text() : listing.table().in(style, /*indent=*/0);
}

std::vector<Listing> listings() {
  using estimator::document_text;
  return {{"gpus", gpu_table, [] { return document_text(gpu_list()); }},
          {"models", model_table, [] { return document_text(model_list()); }},
          {"links", link_table, [] { return document_text(link_list()); }},
          {"frameworks",
           framework_table,
           [] { return document_text(framework_list()); },
           framework_text},
          {"options", option_table, [] { return document_text(option_list()); }},
          {"plans", plan_table, [] { return document_text(plan_list()); }},
          {"torch", torch_table, [] { return document_text(torch_list()); }}};
}

ExitCode run_list(const ListOptions& options, const Environment& environment) {
  const ReportStyle style = style_for_output(options.format.format());
  if (!options.checked_python.empty()) {
    if (options.what == "torch" && style.format == TableFormat::kText) {
      return check_listed_torch(options.checked_python, environment);
    }
    throw estimator::UserError({.what = "--check looks at a torch, and prints text",
                                .where = "list " + options.what + " --check",
                                .help = "onerank list torch --check PYTHON"});
  }
  const std::vector<Listing> all = listings();
  const Listing& listing =
      named_choice(all, options.what, {"list", "what to list?", "unknown list"});
  write_to_standard_output(text_of(listing, style));
  return ExitCode::kDone;
}

}  // namespace

Command add_list_command(CLI::App& root) {
  CLI::App* app =
      root.add_subcommand("list",
                          "the options of a plan, the GPUs, models, links and frameworks "
                          "that it can name, example plans, and torch for `exec`");
  const auto options = std::make_shared<ListOptions>();
  CLI::Option* what = app->add_option(
      "WHAT", options->what, "gpus, models, links, frameworks, options, plans or torch");
  offer(what->type_name(""), names_of_rows(listings()));
  options->format.add_to(*app);
  app->add_option("--check",
                  options->checked_python,
                  "with torch: what `exec` lacks to run programs of this Python")
      ->type_name("PYTHON");
  return {app,
          [options](const Environment& environment) { return run_list(*options, environment); }};
}

}  // namespace sim
