#include "estimator/base/error_document.h"

#include "estimator/base/document.h"
#include "estimator/base/fields.h"

namespace estimator {

ErrorDocument error_document(const UserError& error) {
  return {.exit_code = static_cast<int64_t>(error.exit_code()), .errors = error.problems()};
}

std::string error_message(const UserError& error) {
  return to_json(error_document(error)).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<UserError> error_in(std::string_view message) {
  if (!Json::accept(message)) return std::nullopt;
  auto document = read_written<ErrorDocument>(message, "the message of a process", "");
  return UserError(std::move(document.errors), static_cast<ExitCode>(document.exit_code));
}

}  // namespace estimator
