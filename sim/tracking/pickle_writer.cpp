#include "sim/tracking/pickle_writer.h"

#include <bit>
#include <utility>

namespace sim {
namespace {

/// Opcodes of CPython's Lib/pickletools.py.
enum Opcode : unsigned char {
  kProtocol = 0x80,
  kStop = '.',
  kMark = '(',
  kEmptyDict = '}',
  kSetItems = 'u',
  kEmptyList = ']',
  kAppends = 'e',
  kInt4 = 'J',
  kLong1 = 0x8a,
  kFloat = 'G',
  kText = 'X',
  kTrue = 0x88,
  kFalse = 0x89,
  kTuple2 = 0x86,
  kPut = 'r',
  kGet = 'j',
};

constexpr std::size_t kBatch = 1000;

}  // namespace

PickleWriter::PickleWriter() {
  byte(kProtocol);
  byte(2);
}

void PickleWriter::little_endian(uint64_t value, int size) {
  for (int i = 0; i < size; ++i) byte(value >> (8 * i) & 0xff);
}

void PickleWriter::begin_dict() {
  byte(kEmptyDict);
  byte(kMark);
}

void PickleWriter::end_dict() { byte(kSetItems); }

void PickleWriter::begin_list() { byte(kEmptyList); }

void PickleWriter::begin_item(std::size_t index) {
  if (index % kBatch != 0) return;
  if (index > 0) byte(kAppends);
  byte(kMark);
}

void PickleWriter::end_list(std::size_t items) {
  if (items > 0) byte(kAppends);
}

void PickleWriter::value(int64_t number) {
  if (std::in_range<int32_t>(number)) {
    byte(kInt4);
    little_endian(static_cast<uint64_t>(number), 4);
  } else {
    byte(kLong1);
    byte(8);
    little_endian(static_cast<uint64_t>(number), 8);
  }
}

void PickleWriter::value(double number) {
  byte(kFloat);
  const auto bits = std::bit_cast<uint64_t>(number);
  for (int shift = 56; shift >= 0; shift -= 8) byte(bits >> shift & 0xff);  // big-endian
}

void PickleWriter::value(bool truth) { byte(truth ? kTrue : kFalse); }

void PickleWriter::value(std::string_view text) {
  const auto known = texts_.find(std::string(text));
  if (known != texts_.end()) return recall(known->second);
  byte(kText);
  little_endian(text.size(), 4);
  bytes_ += text;
  texts_.emplace(text, remember());
}

void PickleWriter::pair(int64_t first, int64_t second) {
  value(first);
  value(second);
  byte(kTuple2);
}

uint32_t PickleWriter::remember() {
  byte(kPut);
  little_endian(remembered_, 4);
  return remembered_++;
}

void PickleWriter::recall(uint32_t number) {
  byte(kGet);
  little_endian(number, 4);
}

std::string PickleWriter::finish() && {
  byte(kStop);
  return std::move(bytes_);
}

}  // namespace sim
