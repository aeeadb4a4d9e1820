// Measures how much time counting allocations costs: the time of a malloc and free without
// counting, with liblotus_memory.so, and under heaptrack, on one thread and on two.
//
// Usage: lotus_memory_cost_bench LIBRARY [TIMES]. In each of TIMES rounds, the program starts
// itself once for each measurement, so that all measurements see the same state of the machine.
// Prints minimum and median of the rounds.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "lotus/lotus.hpp"

namespace {

/// Returns the time of one malloc and free in ns, as the minimum of several repetitions.
/// @param window  the number of blocks that are allocated at the same time.
double pair_ns(std::size_t bytes, std::size_t window) {
  using clock = std::chrono::steady_clock;
  constexpr std::size_t pairs = 20'000;
  constexpr int repetitions = 60;
  std::vector<void*> blocks(window, nullptr);
  double least = 1e9;
  for (int r = 0; r < repetitions; ++r) {
    const auto before = clock::now();
    for (std::size_t i = 0; i < pairs; ++i) {
      void*& block = blocks[i % window];
      std::free(block);
      block = std::malloc(bytes);
      asm volatile("" : "+r"(block)::"memory");
    }
    const std::chrono::duration<double, std::nano> took = clock::now() - before;
    least = std::min(least, took.count() / pairs);
  }
  for (void* block : blocks) std::free(block);
  return least;
}

double on_two_threads_ns(std::size_t bytes) {
  double took[2] = {};
  std::thread first([&] { took[0] = pair_ns(bytes, 50); });
  std::thread second([&] { took[1] = pair_ns(bytes, 50); });
  first.join();
  second.join();
  return (took[0] + took[1]) / 2;
}

/// Returns the time in ns of a recorded operation that allocates one block.
double operation_ns() {
  using clock = std::chrono::steady_clock;
  constexpr int operations = 2'000;
  double least = 1e9;
  for (int r = 0; r < 60; ++r) {
    const auto before = clock::now();
    for (int i = 0; i < operations; ++i) {
      LOTUS_SCOPE("bench");
      void* block = std::malloc(100);
      asm volatile("" ::"r"(block) : "memory");
      std::free(block);
    }
    const std::chrono::duration<double, std::nano> took = clock::now() - before;
    lotus::flush();
    least = std::min(least, took.count() / operations);
  }
  return least;
}

void measure() {
  for (const std::size_t bytes : {std::size_t{24}, std::size_t{1000}, std::size_t{150'000}}) {
    std::printf("one thread, %zu B\t%f\n", bytes, pair_ns(bytes, 50));
  }
  std::printf("two threads, 24 B\t%f\n", on_two_threads_ns(24));
  std::printf("two threads, 1000 B\t%f\n", on_two_threads_ns(1000));
  if (std::getenv("LOTUS_LOG_FILE") != nullptr)
    std::printf("an operation with a pair\t%f\n", operation_ns());
}

using figures = std::map<std::string, std::vector<double>>;

bool collect(const std::string& command, const std::string& column,
             std::map<std::string, figures>& all) {
  std::FILE* const out = popen(command.c_str(), "r");
  if (out == nullptr) return false;
  char line[256];
  while (std::fgets(line, sizeof(line), out) != nullptr) {
    if (const char* const tab = std::strchr(line, '\t')) {
      all[std::string(line, static_cast<std::size_t>(tab - line))][column].push_back(
          std::strtod(tab + 1, nullptr));
    }
  }
  return pclose(out) == 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1 && std::strcmp(arguments[1], "measure") == 0) {
    measure();
    return 0;
  }
  if (count < 2) {
    std::fprintf(stderr, "usage: lotus_memory_cost_bench LIBRARY [TIMES]\n");
    return 2;
  }
  const int times = count > 2 ? static_cast<int>(std::strtol(arguments[2], nullptr, 10)) : 5;
  const std::string self = std::string("'") + arguments[0] + "' measure";
  char folder[] = "/tmp/lotus_memory_cost_XXXXXX";
  if (mkdtemp(folder) == nullptr) return 1;
  auto log = [&folder, run = 0]() mutable {
    return std::string("LOTUS_LOG_FILE='") + folder + "/run-" + std::to_string(++run) + "/log' ";
  };
  const bool has_heaptrack = std::system("command -v heaptrack >/dev/null 2>&1") == 0;
  std::map<std::string, figures> all;
  for (int i = 0; i < times; ++i) {
    collect(log() + self, "bare", all);
    collect(log() + "LD_PRELOAD='" + arguments[1] + "' " + self, "counted", all);
    if (has_heaptrack) {
      collect(std::string("heaptrack -r -o '") + folder + "/track' " + self + " 2>&1", "heaptrack",
              all);
    }
  }
  std::printf("%-28s%12s%12s%12s%14s%14s\n", "ns, minimum (median)", "bare", "counted", "more",
              "(median)", "heaptrack");
  for (auto& row : all) {
    auto& of = row.second;
    for (auto& [column, values] : of) std::sort(values.begin(), values.end());
    const auto least = [&](const char* c) { return of[c].empty() ? 0 : of[c].front(); };
    const auto middle = [&](const char* c) { return of[c].empty() ? 0 : of[c][of[c].size() / 2]; };
    std::printf("%-28s%12.2f%12.2f%12.2f%14.2f%14.0f\n", row.first.c_str(), least("bare"),
                least("counted"), least("counted") - least("bare"),
                middle("counted") - middle("bare"), least("heaptrack"));
  }
  return std::system((std::string("rm -rf '") + folder + "'").c_str()) == 0 ? 0 : 1;
}
