// Writing of documents, and reading of those that Onerank wrote.
#pragma once

#include <string>
#include <string_view>

#include "estimator/base/document_head.h"
#include "estimator/base/fields.h"
#include "estimator/base/files.h"

namespace estimator {

/// The text of a JSON value, as it is written to a file or to standard output: a line for each
/// value, but one line for a list of numbers.
std::string document_text(const Json& json);

/// The text of the document.
template <class Document>
std::string document_text(const Document& document) {
  return document_text(to_json(document));
}

/// Throws UserError unless the head of `json` equals `expected`. `origin` names the document in
/// messages; `help` says how such a document is made.
void check_head(const Json& json,
                const DocumentHead& expected,
                const std::string& origin,
                const std::string& help);

/// Reads a document that Onerank wrote. Throws UserError when it is another kind of document or has
/// another version, and when a key is missing, is unknown or has a value that it cannot have.
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
