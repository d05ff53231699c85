#include "sim/cli/commands/html_flag.h"

#include <CLI/CLI.hpp>

#include "estimator/base/files.h"
#include "sim/cli/process/output.h"

namespace sim {
namespace {

constexpr const char* kFlag = "--html";

}  // namespace

void HtmlFlag::add_to(CLI::App& app, const std::string& help) {
  app.add_option(kFlag, file_, help)->type_name("FILE")->group("Output");
}

void HtmlFlag::check() const { check_writable(file_, kFlag); }

void HtmlFlag::write(const Page& page) const {
  estimator::write_file_whole(file_, page_html(page));
}

}  // namespace sim
