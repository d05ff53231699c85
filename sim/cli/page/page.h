// A report as one HTML file. It loads nothing: the style, the script and the numbers are in it.
// The tables are HTML already, so that the page can be read without its script, which adds
// pictures, sorting and filters.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "estimator/cluster/memory_verdict.h"
#include "sim/cli/page/peak_tree.h"
#include "sim/cli/report/table.h"

namespace sim {

/// A number at the top of the page: "Step", "10.07 s", and where it comes from.
struct Headline {
  std::string label;
  std::string value;
  std::string source;
};

/// A change to type: what it is, what it saves, and its flags.
struct Suggestion {
  std::string text;
  std::string gains;
  std::string flags;
};

/// What the script draws, if it runs: a function of this name in page/assets, from the page's data.
struct Picture {
  std::string name;
  std::string caption;  ///< what it shows and how to read it
};

struct PageSection {
  std::string id;  ///< its anchor: letters and hyphens
  std::string title;
  std::vector<std::string> lead;  ///< paragraphs below the title
  std::vector<Picture> pictures;
  std::vector<Suggestion> suggestions;
  std::optional<PeakTree> tree;
  std::vector<TitledTable> tables;
  std::vector<std::string> items;  ///< a list at the end
};

struct Page {
  std::string command;  ///< "onerank estimate"
  std::string title;
  std::optional<estimator::Fit> outcome;  ///< colours the verdict
  std::string verdict;
  std::vector<std::string> setting;  ///< lines that say what was asked
  std::vector<Headline> headlines;
  std::vector<PageSection> sections;
  std::vector<std::pair<std::string, std::string>> data;  ///< JSON for pictures, by name
  std::string tool;                                       ///< who ran the ranks; "": this program
};

/// The whole file. All text is escaped.
std::string page_html(const Page& page);

/// Text as it stands in HTML, also inside an attribute.
std::string escaped_html(std::string_view text);

}  // namespace sim
