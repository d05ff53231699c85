#include <gtest/gtest.h>
#include <stdlib.h>

#ifndef VIRTUAL_GPU_EVENTS
#define VIRTUAL_GPU_EVENTS "immediate"
#endif

/// The GPU that these tests see: two small devices of capability 9.0, joined by NVLink.
int main(int argc, char** argv) {
  setenv("ONERANK_VIRTUAL_GPU",
         "name=Test "
         "GPU;capability=9.0;multiprocessors=132;memory_bytes=1073741824;l2_bytes=52428800;"
         "outside_bytes=0;devices=2;nvlinks=18;board_watts=700;"
         "events=" VIRTUAL_GPU_EVENTS,
         1);
  testing::InitGoogleTest(&argc, argv);
  // Tests of a wrong variable need a process that has not yet asked for its device.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  return RUN_ALL_TESTS();
}
