#include "sim/tracking/pickle_writer.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sim {
namespace {

using namespace std::string_literals;

// Bytes by the opcodes of CPython's Lib/pickletools.py; that Python reads whole files is tested
// with Python (memory_files_test.py).

TEST(PickleWriter, WritesNumbersByTheirSize) {
  PickleWriter small, large;
  small.value(int64_t{-2});
  EXPECT_EQ(std::move(small).finish(), "\x80\x02J\xfe\xff\xff\xff."s);
  large.value(int64_t{1} << 33);
  EXPECT_EQ(std::move(large).finish(), "\x80\x02\x8a\x08\0\0\0\0\x02\0\0\0."s);
}

TEST(PickleWriter, WritesATextOnceAndThenItsNumber) {
  PickleWriter writer;
  writer.begin_dict();
  writer.key("a");
  writer.value("a");
  writer.end_dict();
  EXPECT_EQ(std::move(writer).finish(), "\x80\x02}(X\x01\0\0\0ar\0\0\0\0j\0\0\0\0u."s);
}

TEST(PickleWriter, AppendsAListInBatches) {
  PickleWriter writer;
  writer.begin_list();
  for (std::size_t i = 0; i < 2500; ++i) {
    writer.begin_item(i);
    writer.value(true);
  }
  writer.end_list(2500);
  const std::string bytes = std::move(writer).finish();
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 'e'), 3);
}

}  // namespace
}  // namespace sim
