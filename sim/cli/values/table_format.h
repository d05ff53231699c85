// The formats in which commands print tables.
#pragma once

#include <array>

#include "estimator/base/enum_names.h"

namespace sim {

enum class TableFormat { kText, kMarkdown, kCsv, kJson };
constexpr std::array<estimator::EnumName<TableFormat>, 4> enum_names(TableFormat) {
  return {{{TableFormat::kText, "table"},
           {TableFormat::kMarkdown, "md"},
           {TableFormat::kCsv, "csv"},
           {TableFormat::kJson, "json"}}};
}

}  // namespace sim
