#include "estimator/base/document.h"

#include <fmt/format.h>

#include <algorithm>

namespace estimator {

DocumentHead::DocumentHead(int64_t version, std::string_view its_kind)
    : schema_version(version), kind(its_kind) {}

void check_head(const Json& json,
                const DocumentHead& expected,
                const std::string& origin,
                const std::string& help) {
  const auto refuse = [&](std::string where) {
    std::string name = expected.kind;
    std::replace(name.begin(), name.end(), '_', ' ');
    throw UserError({.what = fmt::format("{} is not a {} of this version", origin, name),
                     .where = std::move(where),
                     .help = help});
  };
  if (!json.is_object() || json.value("kind", Json()) != expected.kind) {
    refuse(fmt::format("kind is not \"{}\"", expected.kind));
  }
  const Json version = json.value("schema_version", Json());
  if (version != expected.schema_version) {
    refuse(fmt::format(
        "schema_version = {}, this tool reads {}", shown(version), expected.schema_version));
  }
}

}  // namespace estimator
