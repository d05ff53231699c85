// torch's stores, in a world of which only this rank exists.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

namespace sim {

/// What an absent rank would have set under `key`, as far as torch's own use of stores tells: an
/// NCCL unique id. Empty when the value is the program's own.
std::optional<std::vector<uint8_t>> invented_value(const std::string& key);

/// Tells the listener, then throws c10d's DistStoreError, which names the key.
[[noreturn]] void refuse_to_invent(const std::string& key);

/// Gets the text "store key ..." of each refusal. One at a time.
void set_refusal_listener(std::function<void(const std::string& what)> listener);

/// One of torch's stores, with its own behaviour for all keys that this process sets. A key that
/// somebody waits for is taken to have been set by an absent rank. Reading a key that nobody has
/// set gives invented_value(), or is an error at once: nothing ever waits.
template <class Real>
class WithAbsentPeers final : public Real {
 public:
  using Real::Real;

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
    const auto value = invented_value(key);
    if (!value) refuse_to_invent(key);
    Real::set(key, *value);
  }
};

/// Constructors, for the memory of an object of the class that is being constructed.
void make_tcp_store(void* place, void* host, const void* options);
void make_file_store(void* place, void* path, int workers);

}  // namespace sim
