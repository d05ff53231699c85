// Reads the tables that are compiled into the program (models, GPUs, links) and finds their rows by
// name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/field_types.h"

namespace estimator {

/// Reads a document strictly: unknown keys and wrong types are errors. `name` is the name of its
/// file. Throws UserError when the document is damaged. `value` is the address of a value of
/// `type`.
void read_document(std::string_view text,
                   const std::string& name,
                   void* value,
                   const FieldType& type);

template <class Document>
Document read_document(std::string_view text, const std::string& name) {
  Document document;
  read_document(text, name, &document, kFieldType<Document>);
  return document;
}

/// Reads the rows of a table in the same way.
template <class Row>
std::vector<Row> read_database(std::string_view text, const std::string& name) {
  return read_document<std::vector<Row>>(text, name);
}

/// Whether two names that people type are the same: upper and lower case are equal, and so are a
/// blank, an underscore and a dash.
bool same_name(std::string_view a, std::string_view b);

/// Whether `wanted` is `name` or one of its `aliases`.
bool is_called(std::string_view wanted,
               std::string_view name,
               const std::vector<std::string>& aliases);

}  // namespace estimator
