#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>

#include "estimator/base/document.h"
#include "estimator/base/files.h"
#include "estimator/base/units.h"
#include "sim/cli/commands/commands.h"
#include "sim/cli/input/device_choice.h"
#include "sim/cli/input/offered_words.h"
#include "sim/cli/process/output.h"
#include "sim/cli/ranks/rank_process.h"
#include "sim/cli/report/table.h"

namespace sim {
namespace {

using estimator::Calibration;
using estimator::DeviceKind;
using estimator::ExitCode;
using estimator::UserError;

struct CalibrateOptions {
  std::string device = "cuda";
  std::string output;
  bool json = false;
};

DeviceKind device_to_measure(const std::string& name, const Environment& environment) {
  constexpr const char* kWhat = "there is no GPU to measure";
  constexpr const char* kHelp =
      "run it on a machine with the GPU; --device cpu only shows the file";
  const DeviceKind device = choose_device(name);
  if (device == DeviceKind::kCuda) require_driver(kWhat, kHelp, environment);
  if (device == DeviceKind::kVirtual) {
    throw UserError({.what = kWhat,
                     .where = fmt::format("--device {}: a virtual GPU has no speed", name),
                     .help = kHelp},
                    ExitCode::kMachineLacks);
  }
  return device;
}

std::string summary(const Calibration& calibration) {
  constexpr double kTera = 1e12;
  Table table({{"kernel", Align::kLeft}, {"time"}, {"rate"}});
  for (const estimator::MeasuredMatmul& row : calibration.matmul) {
    const estimator::MatmulShape shape{.m = row.m, .n = row.n, .k = row.k};
    table.add_row({fmt::format("product {} {} x {} x {}{}",
                               estimator::to_string(row.dtype),
                               row.m,
                               row.n,
                               row.k,
                               row.accumulates ? ", added to fp32" : ""),
                   estimator::format_duration(row.seconds),
                   fmt::format("{:.1f} TFLOP/s", shape.flops() / row.seconds / kTera)});
  }
  for (const estimator::MeasuredAttention& row : calibration.attention) {
    table.add_row(
        {fmt::format("attention {}, {} heads of {}, {} tokens",
                     estimator::to_string(row.pass),
                     row.batch * row.heads,
                     row.head_width,
                     row.sequence),
         estimator::format_duration(row.seconds),
         fmt::format("{:.1f} TFLOP/s", estimator::causal_flops(row) / row.seconds / kTera)});
  }
  const auto add_streams = [&](const char* what, const auto& rows) {
    for (const estimator::MeasuredStream& row : rows) {
      const double rate = static_cast<double>(row.bytes) / row.seconds;
      table.add_row({fmt::format("{} of {:.3g} MB", what, static_cast<double>(row.bytes) / 1e6),
                     estimator::format_duration(row.seconds),
                     fmt::format("{:.3f} TB/s", rate / kTera)});
    }
  };
  add_streams("copy", calibration.streams);
  add_streams("fused AdamW", calibration.optimizer);
  table.add_row({"launch", estimator::format_duration(calibration.launch.kernel_seconds), ""});
  table.add_row({"call from C++", estimator::format_duration(calibration.launch.host_seconds), ""});
  return fmt::format("{}, driver {}, torch {}, {}\n{}",
                     calibration.device.name,
                     calibration.driver,
                     calibration.tool.torch,
                     calibration.date,
                     table.text(2)) +
         (calibration.note.empty() ? "" : "note: " + calibration.note + "\n");
}

ExitCode run_calibrate(const CalibrateOptions& options, const Environment& environment) {
  check_writable_document(options.output, "--output");
  const DeviceKind device = device_to_measure(options.device, environment);
  const Calibration calibration = run_calibration(device, environment);
  const std::string json = estimator::document_text(calibration);
  if (!options.output.empty()) estimator::write_file_whole(options.output, json);
  write_to_standard_output(options.json ? json : summary(calibration));
  return ExitCode::kDone;
}

}  // namespace

Command add_calibrate_command(CLI::App& root) {
  CLI::App* app = root.add_subcommand(
      "calibrate", "measure this machine's GPU; `estimate --calibration` uses the result");
  const auto options = std::make_shared<CalibrateOptions>();
  app->add_option("--output", options->output, "write the calibration as JSON")->type_name("FILE");
  CLI::Option* device =
      app->add_option("--device", options->device, "cuda, or cpu to see the file without a GPU");
  offer(device->type_name("NAME"), {"cuda", "cpu"});
  app->add_flag("--json", options->json, "print the calibration as JSON");
  return {app, [options](const Environment& environment) {
            return run_calibrate(*options, environment);
          }};
}

}  // namespace sim
