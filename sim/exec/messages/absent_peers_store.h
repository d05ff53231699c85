// Versions of torch's stores for a world of which only this rank exists.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "sim/exec/messages/symmetric_exchange.h"

namespace sim {

/// The value that an absent rank would have set under `key`, if torch itself uses this key: an NCCL
/// unique id. Empty when the key is the program's own.
std::optional<std::vector<uint8_t>> invented_value(const std::string& key);

/// Calls the refusal listener, then throws c10d's DistStoreError, which names the key.
[[noreturn]] void refuse_to_invent(const std::string& key);

/// The same of memory that this rank was to share with others; DistBackendError.
[[noreturn]] void refuse_shared_memory(const std::string& what);

/// The same of what an absent rank would have sent.
[[noreturn]] void refuse_message(const std::string& what);

/// `listener` is called with the text "store key ..." of each refusal. There is one listener at a
/// time.
void set_refusal_listener(std::function<void(const std::string& what)> listener);

/// Where this program's ranks keep the keys of a store: a text that is the same for all that meet
/// in it.
void set_meeting_place(const c10d::Store& store, std::string place);

/// Tells the other ranks that are run what rank 0 sets; other ranks' keys stay their own.
void say_value(const c10d::Store& store, const std::string& key, const std::vector<uint8_t>& value);

/// What rank 0 has set, if it is run too and this is another rank. With `waits`, waits until it
/// sets it, or cannot any more.
std::optional<std::vector<uint8_t>> value_of_rank_0(const c10d::Store& store,
                                                    const std::string& key,
                                                    bool waits);

/// One of torch's stores. Keys that this process sets behave as usual. Waiting for a key returns at
/// once, as if an absent rank had set it. Reading a key that this process has not set gives
/// invented_value(), or value_of_rank_0(), or an error.
template <class Real>
class WithAbsentPeers final : public Real {
 public:
  using Real::Real;

  using Real::set;
  void set(const std::string& key, const std::vector<uint8_t>& value) override {
    Real::set(key, value);
    note_own_record(key, value);
    say_value(*this, key, value);
  }

  bool check(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) {
      if (Real::check({key})) continue;
      const auto value = value_of_rank_0(*this, key, /*waits=*/false);
      if (!value) return false;
      Real::set(key, *value);
    }
    return true;
  }

  std::vector<uint8_t> get(const std::string& key) override {
    provide(key);
    return Real::get(key);
  }

  std::vector<std::vector<uint8_t>> multiGet(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) provide(key);
    return Real::multiGet(keys);
  }

  void wait(const std::vector<std::string>&) override {}
  void wait(const std::vector<std::string>&, const std::chrono::milliseconds&) override {}

 private:
  void provide(const std::string& key) {
    if (Real::check({key})) return;
    auto value = record_of_absent_rank(key);
    if (!value) value = invented_value(key);
    if (!value) value = value_of_rank_0(*this, key, /*waits=*/true);
    if (!value) refuse_to_invent(key);
    Real::set(key, *value);
  }
};

/// Construct such a store at `place`, in the memory of the torch store that the program constructs.
void make_tcp_store(void* place, void* host, const void* options);
void make_file_store(void* place, void* path, int workers);

}  // namespace sim
