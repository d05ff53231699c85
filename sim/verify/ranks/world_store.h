// The key-value store in which the ranks of a world meet.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "estimator/base/errors.h"

namespace c10d {
class Store;
}

namespace sim {

/// Where the ranks of a world meet, and which rank this process is.
struct WorldSeat {
  std::string host = "127.0.0.1";
  int port = 0;
  std::string store_prefix = "onerank";  ///< separates these keys from those of other users
  bool keeps_store = false;              ///< this rank opens the store
  std::optional<int> listening_socket;   ///< of the store, if it is already open
  int64_t rank = 0;
  int64_t size = 1;
};

/// Returns a new connected client of the store. open_store() is called first on the rank that keeps
/// the store, and also opens it. Throws UserError (this machine lacks something) when the port is
/// in use, or when nobody opens the store in time.
c10::intrusive_ptr<c10d::Store> open_store(const WorldSeat& seat, std::chrono::seconds timeout);
c10::intrusive_ptr<c10d::Store> connect_store(const WorldSeat& seat, std::chrono::seconds timeout);
/// Ends the process with `when_silent` when something listens at the port but never answers.
c10::intrusive_ptr<c10d::Store> connect_store(const WorldSeat& seat,
                                              std::chrono::seconds timeout,
                                              const estimator::Problem& when_silent);

void set_text(c10d::Store& store, const std::string& key, const std::string& text);
/// Throws c10::Error when the key does not come within the store's timeout.
std::string get_text(c10d::Store& store, const std::string& key);

/// Posts a failure; only the first failure of a world counts.
void post_failure(c10d::Store& store, const estimator::Problem& problem);
std::optional<estimator::Problem> posted_failure(c10d::Store& store);

}  // namespace sim
