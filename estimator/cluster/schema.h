// The JSON Schema (draft-07) of every document. It is made from the same list of fields as its
// reading and writing.
#pragma once

#include "estimator/base/document.h"
#include "estimator/base/fields.h"

namespace estimator {

/// The schema of a type's JSON: types, enumerations, ranges and descriptions. Only the keys of an
/// object's fields are allowed. Optionals may also be null or "auto", as in reading.
Json schema_of(const FieldType& type, RequiredKeys required, Range range = {});
template <class T>
Json schema_of(RequiredKeys required) {
  return schema_of(kFieldType<T>, required);
}

/// The schema of a whole document, with "$schema" and "title".
Json titled_schema(const std::string& title, const Json& schema);

/// The same for a document that Onerank writes. Its head must equal that of `example`.
template <class Document>
Json document_schema(const std::string& title, const Document& example = {}) {
  Json schema = titled_schema(title, schema_of<Document>(RequiredKeys::kAllButOptional));
  schema["properties"]["schema_version"]["enum"] = Json::array({example.head.schema_version});
  schema["properties"]["kind"]["enum"] = Json::array({example.head.kind});
  return schema;
}

/// The schema of a plan, which may name its model or give all its fields.
Json plan_schema();
/// The schema of each line of a peak snapshot, which is the header or an allocation.
Json peak_snapshot_schema();

}  // namespace estimator
