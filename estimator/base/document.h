// What all documents have that Onerank writes: a head that says which document it is, and of which
// version. `DocumentHead head` is the first member of each, and visit_head() the first line of its
// list of fields.
#pragma once

#include <string>
#include <string_view>

#include "estimator/base/fields.h"
#include "estimator/base/files.h"

namespace estimator {

struct DocumentHead {
  DocumentHead() = default;
  // Not inline: in documents that GCC 12 builds from members it warns of a `kind` without a value.
  DocumentHead(int64_t version, std::string_view kind);

  int64_t schema_version = 1;  ///< of its keys: another one where a reader would go wrong
  std::string kind;            ///< "rank_profile"
};
template <class Visitor>
void visit_head(Visitor& visit, DocumentHead& head) {
  visit("schema_version", head.schema_version, "of this document");
  visit("kind", head.kind, "which document this is");
}

/// The document as it is written, to a file or to standard output.
template <class Document>
std::string document_text(const Document& document) {
  return to_json(document).dump(1) + "\n";
}

/// Throws UserError unless `json` has the head that `expected` is. `origin` names the document in
/// messages, `help` says how it is made.
void check_head(const Json& json,
                const DocumentHead& expected,
                const std::string& origin,
                const std::string& help);

/// Reads a document that Onerank wrote. Throws UserError when it is another one or of another
/// version, and when keys are missing, unknown, or hold what they cannot.
template <class Document>
Document read_written(std::string_view text, const std::string& origin, const std::string& help) {
  const Json json = parse_json(text, origin);
  Document document;
  check_head(json, document.head, origin, help);
  FieldReader reader(origin, RequiredKeys::kAllButOptional);
  reader.read(json, document, "");
  reader.throw_if_any();
  return document;
}

}  // namespace estimator
