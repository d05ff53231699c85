#include "estimator/base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace estimator {
namespace {

UserError cannot(const std::string& verb, const std::string& path, const std::string& why) {
  return UserError({.what = fmt::format("cannot {} {}", verb, path),
                    .where = why,
                    .help = verb == "read" ? "check the path and its permissions"
                                           : "give a path in a folder that you may write to"});
}

/// Remembers a key that stands twice in one object (the last one would win in silence), and refuses
/// nesting that no document of ours has (it would overflow the stack of whoever walks it).
class StructureCheck {
 public:
  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    constexpr int kDeepest = 64;
    if (depth > kDeepest) throw TooDeep{};
    if (event == Json::parse_event_t::object_start) keys_.emplace_back();
    if (event == Json::parse_event_t::object_end) keys_.pop_back();
    if (event == Json::parse_event_t::key &&
        !keys_.back().insert(parsed.get<std::string>()).second) {
      duplicate_ = parsed.get<std::string>();
    }
    return true;
  }
  const std::string& duplicate() const { return duplicate_; }

  struct TooDeep {};

 private:
  std::vector<std::set<std::string>> keys_;
  std::string duplicate_;
};

// Without exceptions: a folder that may not be searched is reported when the file is opened.
bool is_folder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

/// A pipe, a terminal or a device: there is nothing to rename onto.
bool is_special(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored);
}

/// The file that a symbolic link means: it is replaced, not the link.
std::string resolve_links(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path target = std::filesystem::canonical(path, failed);
  return failed ? path : target.string();
}

/// Creates `file` with `content`. Messages name `shown_path`, which is what the user gave.
void write_through(const std::string& file,
                   const std::string& shown_path,
                   std::string_view content) {
  const int descriptor = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) throw cannot("write", shown_path, std::strerror(errno));
  int failure = 0;
  while (!content.empty() && failure == 0) {
    const ssize_t written = write(descriptor, content.data(), content.size());
    if (written >= 0) content.remove_prefix(static_cast<std::size_t>(written));
    if (written < 0 && errno != EINTR) failure = errno;
  }
  if (close(descriptor) != 0 && failure == 0) failure = errno;
  if (failure != 0) throw cannot("write", shown_path, std::strerror(failure));
}

}  // namespace

std::string read_file(const std::string& path) {
  if (is_folder(path)) throw cannot("read", path, "it is a folder");
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw cannot("read", path, std::strerror(errno));
  std::ostringstream content;
  content << stream.rdbuf();
  if (stream.bad()) throw cannot("read", path, std::strerror(errno));
  return std::move(content).str();
}

void write_file_whole(const std::string& path, std::string_view content) {
  if (is_folder(path)) throw cannot("write", path, "it is a folder");
  if (is_special(path)) return write_through(path, path, content);
  const std::string target = resolve_links(path);
  const std::string beside = fmt::format("{}.{}.part", target, getpid());
  try {
    write_through(beside, path, content);
    if (rename(beside.c_str(), target.c_str()) != 0) {
      throw cannot("write", path, std::strerror(errno));
    }
  } catch (const UserError&) {
    unlink(beside.c_str());
    throw;
  }
}

Json parse_json(std::string_view text, const std::string& origin) {
  StructureCheck check;
  try {
    Json json = Json::parse(text.begin(), text.end(), std::ref(check));
    if (!check.duplicate().empty()) {
      throw UserError({.what = "a key stands twice in one object",
                       .where = fmt::format("{}: {}", origin, check.duplicate()),
                       .help = "keep one of the two"});
    }
    return json;
  } catch (const StructureCheck::TooDeep&) {
    throw UserError({.what = fmt::format("{} is nested too deeply", origin),
                     .where = "more than 64 brackets are open",
                     .help = "see scripts/plans/ for complete examples"});
  } catch (const Json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 3, column 7: ..." -> from "line" on.
    const std::string message = error.what();
    const std::size_t from = message.find("line ");
    throw UserError({.what = fmt::format("{} is not valid JSON", origin),
                     .where = from == std::string::npos ? message : message.substr(from),
                     .help = "see scripts/plans/ for complete examples"});
  }
}

std::string shown(const Json& json) {
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  constexpr std::size_t kLongest = 60;
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

}  // namespace estimator
