#include "sim/cli/page/page.h"

#include <fmt/format.h>

#include "estimator/base/text.h"
#include "estimator/base/units.h"

namespace onerank_data {
extern const std::string_view page_style_css, page_base_js, page_figures_js, page_memory_js,
    page_step_js, page_plots_js;
}  // namespace onerank_data

namespace sim {
namespace {

constexpr std::string_view kHead =
    R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:">
)";

std::string tone_of(const std::optional<estimator::Fit>& outcome) {
  if (!outcome) return "neutral";
  switch (*outcome) {
    case estimator::Fit::kFits:
      return "good";
    case estimator::Fit::kTooClose:
      return "close";
    case estimator::Fit::kDoesNotFit:
      return "bad";
  }
  return "neutral";
}

// ---- tables

constexpr std::size_t kLongTable = 30;  // rows; a longer one scrolls in a box

/// The last column without a title has notes.
const char* class_of(const std::vector<Column>& columns, std::size_t i) {
  if (columns[i].align == Align::kRight) return "number";
  return columns[i].title.empty() && i + 1 == columns.size() ? "words note" : "words";
}

std::string row_html(const std::vector<Column>& columns, const std::vector<std::string>& cells) {
  std::string html = "<tr>";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    html += fmt::format("<td class=\"{}\">{}</td>", class_of(columns, i), escaped_html(cells[i]));
  }
  return html + "</tr>\n";
}

std::string head_html(const std::vector<Column>& columns) {
  std::string html = "<tr>";
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string source = escaped_html(columns[i].source);
    html += fmt::format("<th scope=\"col\" class=\"{}\"{}>{}</th>",
                        class_of(columns, i),
                        source.empty() ? "" : fmt::format(" title=\"{}\"", source),
                        escaped_html(columns[i].title));
  }
  return html + "</tr>\n";
}

/// The sources of the columns as a list that can be opened: a hover needs a mouse.
std::string sources_html(const std::vector<Column>& columns) {
  std::string list;
  for (const Column& column : columns) {
    if (column.source.empty()) continue;
    list += fmt::format(
        "<dt>{}</dt><dd>{}</dd>\n", escaped_html(column.title), escaped_html(column.source));
  }
  if (list.empty()) return "";
  return "<details class=\"sources\"><summary>Where these numbers come from</summary><dl>\n" +
         list + "</dl></details>\n";
}

std::string table_html(const Table& table, const std::string& title) {
  const std::string& name = title.empty() ? table.columns().front().title : title;
  std::string html = title.empty() ? "" : "<h3>" + escaped_html(title) + "</h3>\n";
  html += fmt::format(
      "<div class=\"scroll{}\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table>\n",
      table.rows().size() > kLongTable ? " long" : "",
      escaped_html(name));
  html += "<thead>" + head_html(table.columns()) + "</thead>\n<tbody>\n";
  for (const auto& row : table.rows()) html += row_html(table.columns(), row);
  return html + "</tbody></table></div>\n" + sources_html(table.columns());
}

std::string titled_html(const TitledTable& titled) {
  std::string html = table_html(titled.table, titled.title);
  for (const std::string& note : titled.notes) {
    html += "<p class=\"small\">" + escaped_html(note) + "</p>\n";
  }
  return html;
}

// ---- the tree of modules

std::string share_text(int64_t bytes, int64_t whole) {
  const double share = whole > 0 ? static_cast<double>(bytes) / static_cast<double>(whole) : 0;
  return fmt::format("{:.1f} %", 100 * share);
}

std::string tensors_html(const std::vector<TensorGroup>& tensors) {
  std::string html =
      "<div class=\"scroll\"><table class=\"tensors\"><thead><tr><th>tensor</th><th>type</th>"
      "<th>for</th><th>made by</th><th>in</th><th class=\"number\">count</th>"
      "<th class=\"number\">MiB</th></tr></thead><tbody>\n";
  for (const TensorGroup& group : tensors) {
    html += fmt::format(
        "<tr data-bytes=\"{}\"><td>{}</td><td>{}</td><td><i class=\"c-{}\"></i>{}</td><td>{}</td>"
        "<td class=\"place\">{}</td><td class=\"number\">{}</td><td "
        "class=\"number\">{}</td></tr>\n",
        group.bytes,
        escaped_html(group.tensor),
        escaped_html(group.dtype),
        group.category,
        group.category,
        escaped_html(group.made_by),
        escaped_html(group.place),
        estimator::with_commas(group.count),
        estimator::format_mib(group.bytes));
  }
  return html + "</tbody></table></div>\n";
}

/// Memory in the unit of the whole: MiB if that is below a GiB.
std::string tree_amount(int64_t bytes, int64_t whole) {
  return whole < estimator::kGiB ? estimator::format_mib(bytes) : gib(bytes);
}

std::string module_html(const PeakTree& module, int64_t whole, bool open) {
  std::string html = fmt::format(
      "<details class=\"module\" data-bytes=\"{}\" data-count=\"{}\" data-category=\"{}\"{}>"
      "<summary><b>{}</b><span class=\"bar\"><i class=\"c-{}\" style=\"width:{:.1f}%\"></i></span>"
      "<span class=\"number\">{}</span><span class=\"number\">{}</span>"
      "<span class=\"number count\">{}</span></summary>\n",
      module.bytes,
      module.count,
      module.category,
      open ? " open" : "",
      escaped_html(module.name),
      module.category,
      whole > 0 ? 100 * static_cast<double>(module.bytes) / static_cast<double>(whole) : 0,
      tree_amount(module.bytes, whole),
      share_text(module.bytes, whole),
      estimator::with_commas(module.count));
  for (const PeakTree& inner : module.modules) html += module_html(inner, whole, false);
  if (!module.tensors.empty()) html += tensors_html(module.tensors);
  return html + "</details>\n";
}

std::string tree_html(const PeakTree& tree) {
  std::string html = fmt::format(
      "<div class=\"tree\"><div class=\"head\"><b>module</b><span></span>"
      "<span class=\"number\">{}</span><span class=\"number\">share</span>"
      "<span class=\"number count\">tensors</span></div>\n",
      tree.bytes < estimator::kGiB ? "MiB" : "GiB");
  for (const PeakTree& module : tree.modules) {
    html += module_html(module, tree.bytes, &module == &tree.modules.front());
  }
  return html + "</div>\n";
}

// ---- sections

std::string picture_html(const Picture& picture) {
  return fmt::format(
      "<figure class=\"picture\" data-picture=\"{}\" hidden><figcaption>{}</figcaption></figure>\n",
      escaped_html(picture.name),
      escaped_html(picture.caption));
}

std::string suggestions_html(const std::vector<Suggestion>& suggestions) {
  if (suggestions.empty()) return "";
  std::string html = "<ol class=\"suggestions\">\n";
  for (const Suggestion& suggestion : suggestions) {
    html += fmt::format("<li><b>{}</b> <span class=\"small\">{}</span><code>{}</code></li>\n",
                        escaped_html(suggestion.text),
                        escaped_html(suggestion.gains),
                        escaped_html(suggestion.flags));
  }
  return html + "</ol>\n";
}

std::string items_html(const std::vector<std::string>& items) {
  if (items.empty()) return "";
  std::string html = "<ul>\n";
  for (const std::string& item : items) html += "<li>" + escaped_html(item) + "</li>\n";
  return html + "</ul>\n";
}

std::string section_html(const PageSection& section) {
  std::string html = fmt::format(
      "<section id=\"{}\">\n<h2>{}</h2>\n", escaped_html(section.id), escaped_html(section.title));
  for (const std::string& paragraph : section.lead) {
    html += "<p>" + escaped_html(paragraph) + "</p>\n";
  }
  html += suggestions_html(section.suggestions);
  for (const Picture& picture : section.pictures) html += picture_html(picture);
  if (section.tree) html += tree_html(*section.tree);
  for (const TitledTable& table : section.tables) html += titled_html(table);
  return html + items_html(section.items) + "</section>\n";
}

// ---- the page

std::string header_html(const Page& page) {
  std::string html = fmt::format(
      "<header>\n<p class=\"command\">{}</p>\n<h1>{}</h1>\n<p class=\"verdict {}\">{}</p>\n",
      escaped_html(page.command),
      escaped_html(page.title),
      tone_of(page.outcome),
      escaped_html(page.verdict));
  if (!page.headlines.empty()) html += "<dl class=\"headlines\">\n";
  for (const Headline& headline : page.headlines) {
    html += fmt::format(
        "<div tabindex=\"0\" title=\"{2}\"><dt>{0}</dt><dd>{1}</dd><dd class=\"source\">{2}</dd>"
        "</div>\n",
        escaped_html(headline.label),
        escaped_html(headline.value),
        escaped_html(headline.source));
  }
  if (!page.headlines.empty()) html += "</dl>\n";
  for (const std::string& line : page.setting) {
    html += "<p class=\"setting\">" + escaped_html(line) + "</p>\n";
  }
  return html + "</header>\n";
}

std::string contents_html(const std::vector<PageSection>& sections) {
  std::string html = "<nav aria-label=\"Contents\"><ol>\n";
  for (const PageSection& section : sections) {
    html += fmt::format(
        "<li><a href=\"#{}\">{}</a></li>\n", escaped_html(section.id), escaped_html(section.title));
  }
  return html + "</ol></nav>\n";
}

/// JSON as it may stand in a script: no text in it can end the script.
std::string data_html(const std::vector<std::pair<std::string, std::string>>& data) {
  std::string json = "{";
  for (const auto& [name, text] : data) {
    json += fmt::format("{}\"{}\":{}", json.size() > 1 ? ",\n" : "", name, text);
  }
  std::string safe;
  for (const char c : json + "}") {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return "<script type=\"application/json\" id=\"data\">" + safe + "</script>\n";
}

std::string script_html() {
  std::string html = "<script>\n\"use strict\";\n";
  for (const std::string_view part : {onerank_data::page_base_js,
                                      onerank_data::page_figures_js,
                                      onerank_data::page_memory_js,
                                      onerank_data::page_step_js,
                                      onerank_data::page_plots_js}) {
    html += part;
  }
  return html + "start();\n</script>\n";
}

}  // namespace

std::string escaped_html(std::string_view text) {
  std::string html;
  for (const char c : estimator::printable(text)) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        html += c;
    }
  }
  return html;
}

std::string page_html(const Page& page) {
  std::string html(kHead);
  html += fmt::format("<title>{} - {}</title>\n<style>\n{}</style>\n</head>\n<body>\n",
                      escaped_html(page.title),
                      escaped_html(page.command),
                      onerank_data::page_style_css);
  html += "<a class=\"skip\" href=\"#content\">To the content</a>\n" + header_html(page) +
          contents_html(page.sections) + "<main id=\"content\">\n";
  for (const PageSection& section : page.sections) html += section_html(section);
  return html + "</main>\n<footer><p>" +
         escaped_html(page.tool.empty() ? "onerank " ONERANK_VERSION : page.tool) +
         "</p></footer>\n<div id=\"tip\" role=\"tooltip\" hidden></div>\n" + data_html(page.data) +
         script_html() + "</body>\n</html>\n";
}

}  // namespace sim
