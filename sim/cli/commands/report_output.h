// Reports as people read them: in the width and the colours of the terminal.
#pragma once

#include <string_view>

#include "sim/cli/process/environment.h"
#include "sim/cli/report/report_style.h"

namespace sim {

/// A report for standard output: as wide as the terminal, or in lines of any length for a file or a
/// pipe.
ReportStyle style_for_output(TableFormat format = TableFormat::kText);

/// Writes it to standard output. Where a terminal shows it, long lines are wrapped between words;
/// verdicts and priorities of advice have colours if the terminal has (see output_has_colours()).
void write_report(std::string_view text, const Environment& environment);

}  // namespace sim
