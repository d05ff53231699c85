// An error as a document: what --json prints, and what a process hands to the one that started it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/document_head.h"
#include "estimator/base/errors.h"

namespace estimator {

template <class Visitor>
void visit_fields(Visitor& visit, Problem& problem) {
  visit("what", problem.what, "what is wrong");
  visit("where", problem.where, "the file, key, flag or variable, with its value, and why");
  visit("way_out", problem.help, "what to do");
}

/// What is printed with --json where there is an error; it goes to standard error as text, too.
struct ErrorDocument {
  DocumentHead head{1, "error"};
  int64_t exit_code = 0;
  std::vector<Problem> errors;
};
template <class Visitor>
void visit_fields(Visitor& visit, ErrorDocument& document) {
  visit_head(visit, document.head);
  visit("exit_code", document.exit_code, "of the program");
  visit("errors", document.errors, "all that were found");
}

ErrorDocument error_document(const UserError& error);

/// The document in one line; what is not UTF-8 is replaced.
std::string error_message(const UserError& error);

/// The error in such a line; empty if there is none, because the process ended before it told it.
std::optional<UserError> error_in(std::string_view message);

}  // namespace estimator
