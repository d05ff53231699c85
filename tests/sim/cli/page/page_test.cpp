#include "sim/cli/page/page.h"

#include <gmock/gmock.h>

#include "sim/cli/page/sections.h"

namespace sim {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kHostile = "</script><img src=x onerror=\"alert('1')\">&";

/// Everything of a page that may come from a user.
Page hostile_page() {
  Table table({{kHostile, Align::kLeft, kHostile}});
  table.add_row({kHostile});
  Page page{.command = kHostile, .title = kHostile, .verdict = kHostile, .setting = {kHostile}};
  page.headlines = {{kHostile, kHostile, kHostile}};
  page.sections = {{.id = "one",
                    .title = kHostile,
                    .lead = {kHostile},
                    .pictures = {{"parts", kHostile}},
                    .suggestions = {{kHostile, kHostile, kHostile}},
                    .tables = {{kHostile, table, {kHostile}}},
                    .items = {kHostile}}};
  page.sections[0].tree = PeakTree{
      .modules = {{.name = kHostile,
                   .category = "activation",
                   .tensors = {{kHostile, kHostile, "activation", kHostile, kHostile, 1, 1}}}}};
  page.data = {{"estimate", "{\"name\": \"</script><img src=x>\"}"}};
  page.tool = kHostile;
  return page;
}

TEST(Page, IsNamedAfterAllThePlansThatItCompares) {
  std::vector<estimator::Plan> plans(3);
  for (estimator::Plan& plan : plans) plan.model_preset = "llama3-8b";
  plans[0].cluster.gpu = plans[1].cluster.gpu = "h100-sxm";
  plans[2].cluster.gpu = "b200";
  EXPECT_EQ(title_of(plans), "llama3-8b on h100-sxm, llama3-8b on b200");
}

TEST(Page, EscapesAllThatComesFromUsers) {
  const std::string html = page_html(hostile_page());
  EXPECT_THAT(html, Not(HasSubstr("<img")));
  EXPECT_THAT(html, Not(HasSubstr("onerror=\"")));
  EXPECT_THAT(html, HasSubstr("\\u003c/script>\\u003cimg"));
  EXPECT_EQ(escaped_html("<a href='b'>&\""), "&lt;a href=&#39;b&#39;&gt;&amp;&quot;");
}

TEST(Page, HasItsTablesWithoutScriptsAndTheSourcesOfTheirNumbers) {
  Table table({{"rank"}, {"GiB", Align::kRight, "simulated: counted"}, {"", Align::kLeft}});
  table.add_row({"7", "1.50", "worst"});
  Page page{.command = "onerank estimate", .title = "plan", .outcome = estimator::Fit::kFits};
  page.sections = {{.id = "memory", .title = "Memory", .tables = {{"Of each", table, {"a note"}}}}};
  const std::string html = page_html(page);
  EXPECT_THAT(html, HasSubstr("<p class=\"verdict good\">"));
  EXPECT_THAT(html, HasSubstr("<a href=\"#memory\">Memory</a>"));
  EXPECT_THAT(html, HasSubstr("<h3>Of each</h3>"));
  EXPECT_THAT(html,
              HasSubstr("<td class=\"number\">7</td><td class=\"number\">1.50</td>"
                        "<td class=\"words note\">worst</td>"));
  EXPECT_THAT(html, HasSubstr("<th scope=\"col\" class=\"number\" title=\"simulated: counted\">"));
  EXPECT_THAT(html, HasSubstr("<dt>GiB</dt><dd>simulated: counted</dd>"));
  EXPECT_THAT(html, HasSubstr("a note"));
}

}  // namespace
}  // namespace sim
