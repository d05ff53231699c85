#include "sim/cli/commands/report_output.h"

#include "sim/cli/process/output.h"
#include "sim/cli/process/terminal.h"
#include "sim/cli/report/wrapped_text.h"

namespace sim {
namespace {

/// Words at the beginning of a line, and their colours (ECMA-48, select graphic rendition).
constexpr Paint kPaints[] = {{"fits:", "1;32"},
                             {"too close to call:", "1;33"},
                             {"does not fit:", "1;31"},
                             {"critical:", "1;31"},
                             {"high:", "1;33"}};

}  // namespace

ReportStyle style_for_output(TableFormat format) {
  const int columns = output_columns(0);
  ReportStyle style{.format = format};
  if (columns > 0) style.columns = static_cast<std::size_t>(columns);
  return style;
}

void write_report(std::string_view text, const Environment& environment) {
  const std::string lines = with_wrapped_lines(text, style_for_output().columns);
  if (output_has_colours(environment)) {
    write_to_standard_output(lines, kPaints);
  } else {
    write_to_standard_output(lines);
  }
}

}  // namespace sim
