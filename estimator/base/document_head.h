// Every document that Onerank writes begins with a head, which says which document it is and of
// which version. `DocumentHead head` is the first member of each document's struct, and
// visit_head() is the first line of its list of fields.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace estimator {

struct DocumentHead {
  DocumentHead() = default;
  // Not inline: if it were, GCC 12 would warn that `kind` may be uninitialised.
  DocumentHead(int64_t version, std::string_view kind);

  int64_t schema_version = 1;  ///< rises when older readers would misread the document
  std::string kind;            ///< "rank_profile"
};
template <class Visitor>
void visit_head(Visitor& visit, DocumentHead& head) {
  visit("schema_version", head.schema_version, "version of this kind of document");
  visit("kind", head.kind, "which document this is");
}

}  // namespace estimator
