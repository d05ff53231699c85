// Writing of documents, and reading of those that Onerank wrote.
#pragma once

#include <string>
#include <string_view>

#include "estimator/base/document_head.h"
#include "estimator/base/field_types.h"
#include "estimator/base/json.h"

namespace estimator {

/// The text of a JSON value, as it is written to a file or to standard output: a line for each
/// value, but one line for a list of numbers.
std::string document_text(const Json& json);

/// The text of the document. `value` is the address of a value of `type`.
std::string document_text(const void* value, const FieldType& type);

template <class Document>
std::string document_text(const Document& document) {
  return document_text(&document, kFieldType<Document>);
}

/// Throws UserError unless the head of `json` equals `expected`. `origin` names the document in
/// messages; `help` says how such a document is made.
void check_head(const Json& json,
                const DocumentHead& expected,
                const std::string& origin,
                const std::string& help);

/// A document that Onerank wrote; `origin` and `help` as above.
struct WrittenDocument {
  std::string_view text;
  const std::string& origin;
  const std::string& help;
};

/// `value` is the address of a value of `type`, which has the head `expected`.
void read_written(const WrittenDocument& written,
                  const DocumentHead& expected,
                  void* value,
                  const FieldType& type);

/// Reads a document that Onerank wrote. Throws UserError when it is another kind of document or has
/// another version, and when a key is missing, is unknown or has a value that it cannot have.
template <class Document>
Document read_written(std::string_view text, const std::string& origin, const std::string& help) {
  Document document;
  const DocumentHead expected = document.head;
  read_written({text, origin, help}, expected, &document, kFieldType<Document>);
  return document;
}

}  // namespace estimator
