// Threads of a test that begin at the same moment.
#pragma once

#include <barrier>
#include <thread>
#include <vector>

inline constexpr int kThreads = 8;

/// Calls work(number) on kThreads threads, numbered from 0, and waits for them.
template <class Work>
void at_once(const Work& work) {
  std::barrier start(kThreads);
  std::vector<std::jthread> threads;
  for (int number = 0; number < kThreads; ++number) {
    threads.emplace_back([&, number] {
      start.arrive_and_wait();
      work(number);
    });
  }
}
