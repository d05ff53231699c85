// What leaves the program: data to standard output or to a file, whole or with an error.
#pragma once

#include <string>
#include <string_view>

namespace sim {

/// Writes all of it to standard output, fit for a terminal (printable()). Throws UserError (this
/// machine lacks something) when the reader has gone or the disk is full; SIGPIPE must be ignored
/// for that.
void write_to_standard_output(std::string_view text);

/// The same to standard error, where a reader that has gone is no error.
void write_to_standard_error(std::string_view text);

/// Throws UserError when `path` cannot become a file, by its place or by its name: to be called
/// before a long computation, so that its result has a place. An empty path asks for nothing and is
/// good.
void check_writable(const std::string& path, const std::string& flag);

/// The same for a document: its name must not promise another format than JSON.
void check_writable_document(const std::string& path, const std::string& flag);

/// The same for a folder that files are to be written to, which may not be there yet.
void check_writable_folder(const std::string& path, const std::string& flag);

}  // namespace sim
