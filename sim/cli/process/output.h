// Output of the program to standard output or to a file. It is written as a whole, or there is an
// error.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace sim {

/// Writes the whole text to standard output, safe for a terminal (see printable()). Throws
/// UserError (this machine lacks something) when the reader has gone or the disk is full; SIGPIPE
/// must be ignored for this.
void write_to_standard_output(std::string_view text);

/// Words, and the colour that they have where a line begins with them, or with a number before.
struct Paint {
  std::string_view words;
  std::string_view code;  ///< of ECMA-48's select graphic rendition: "1;32"
};

/// The same in colours.
void write_to_standard_output(std::string_view text, std::span<const Paint> paints);

/// The same for standard error, but here it is no error when the reader has gone.
void write_to_standard_error(std::string_view text);

/// Throws UserError when no file can be written at `path`, because of its folder or its name. Call
/// it before a long computation whose result is written there. An empty path means that no file is
/// wanted, and is accepted.
void check_writable(const std::string& path, const std::string& flag);

/// The same for a document: its name must not have the extension of another format than JSON.
void check_writable_document(const std::string& path, const std::string& flag);

/// The same for a folder for files. The folder need not exist yet.
void check_writable_folder(const std::string& path, const std::string& flag);

}  // namespace sim
