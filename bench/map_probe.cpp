// Runs twelve operations with known functions and times, to check the results of lotus-tool map.
//
//   map_probe                    runs each operation once, in a LOTUS_MAP_REGION: for `map run`
//   map_probe --truth            prints "operation,function,microseconds"
//   map_probe --run THREADS MS   runs all operations in scopes, on THREADS threads for MS ms: for
//                                `map record` and `map join`; prints "operation,cpu seconds"
#include <time.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <lotus/lotus.hpp>
#include <mutex>
#include <thread>
#include <vector>

namespace {

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

/// Number of rounds of arithmetic per microsecond. The program measures it when it starts.
double rounds_per_us = 0;

__attribute__((always_inline)) inline double work(double us) {
  double x = us;
  const auto rounds = static_cast<std::int64_t>(us * rounds_per_us);
  for (std::int64_t i = 0; i < rounds; ++i) {
    x = x * 1.0000001 + 1e-9;
    __asm__ volatile("" : "+x"(x));
  }
  return x;
}

// Each function contains its name as a string. Otherwise, the compiler would merge all functions
// into one, because they are identical.
#define FUNCTION(name)                               \
  __attribute__((noinline)) double name(double us) { \
    __asm__ volatile("" : : "r"(#name));             \
    return work(us);                                 \
  }

FUNCTION(calibrate)
FUNCTION(decode_blocks)
FUNCTION(inverse_transform)
FUNCTION(colour_convert)
FUNCTION(copy_rows)
FUNCTION(resample_rows)
FUNCTION(resample_columns)
FUNCTION(mirror_row)
FUNCTION(to_float)
FUNCTION(subtract_mean)
FUNCTION(divide_deviation)
FUNCTION(rotate_tile)
FUNCTION(blur_row)
FUNCTION(add_noise)
FUNCTION(equalize_bins)
FUNCTION(join_batch)
FUNCTION(checksum)

struct step {
  const char* function;
  double (*call)(double us);
  double us;
};

struct operation {
  const char* name;
  std::vector<step> steps;
};

#define STEP(function, us)  \
  step {                    \
    #function, function, us \
  }

/// The operations, with the functions that each one calls and their times in microseconds. Two
/// cases are difficult for sampling: times below the sampling interval of 1 ms (300 us), and
/// functions that several operations call (copy_rows and checksum).
const std::vector<operation>& operations() {
  static const std::vector<operation> all{
      {"Load",
       {STEP(decode_blocks, 3000), STEP(inverse_transform, 1500), STEP(colour_convert, 300)}},
      {"Crop", {STEP(copy_rows, 300), STEP(resample_rows, 900), STEP(resample_columns, 600)}},
      {"Flip", {STEP(mirror_row, 300)}},
      {"ToTensor", {STEP(to_float, 700), STEP(copy_rows, 300)}},
      {"Normalize", {STEP(subtract_mean, 300), STEP(divide_deviation, 300)}},
      {"Rotate", {STEP(rotate_tile, 1200), STEP(copy_rows, 500)}},
      {"Blur", {STEP(blur_row, 2000)}},
      {"Noise", {STEP(add_noise, 300), STEP(checksum, 300)}},
      {"Equalize", {STEP(equalize_bins, 400), STEP(colour_convert, 400)}},
      {"Collate", {STEP(join_batch, 1000), STEP(copy_rows, 1000)}},
      {"Verify", {STEP(checksum, 2500)}},
      {"Thumbnail", {STEP(decode_blocks, 800), STEP(resample_rows, 300), STEP(checksum, 300)}},
  };
  return all;
}

volatile double sink = 0;

void calibrate_rounds() {
  rounds_per_us = 100;
  double best = 0;
  for (int i = 0; i < 20; ++i) {
    const double start = cpu_seconds();
    sink = calibrate(1000);
    const double per_us = 1000 * rounds_per_us / ((cpu_seconds() - start) * 1e6);
    if (per_us > best) best = per_us;
  }
  rounds_per_us = best;
}

void perform(const operation& op) {
  for (const step& s : op.steps) sink = sink + s.call(s.us);
}

void run_once() {
  for (const operation& op : operations()) {
    LOTUS_MAP_REGION(op.name) {
      perform(op);
    }
  }
}

void print_truth() {
  for (const operation& op : operations()) {
    for (const step& s : op.steps) {
      std::printf("%s,%s,%.0f\n", op.name, s.function, s.us);
    }
  }
}

void run_threads(unsigned count, double ms) {
  std::vector<double> seconds(operations().size());
  std::mutex guard;
  const auto start = std::chrono::steady_clock::now();
  const auto body = [&](std::size_t first) {
    std::vector<double> own(operations().size());
    for (std::size_t at = first;; at = (at + 1) % own.size()) {
      const std::chrono::duration<double, std::milli> passed =
          std::chrono::steady_clock::now() - start;
      if (passed.count() >= ms) break;
      LOTUS_SCOPE_DYNAMIC(operations()[at].name);
      const double before = cpu_seconds();
      perform(operations()[at]);
      own[at] += cpu_seconds() - before;
    }
    const std::lock_guard<std::mutex> hold{guard};
    for (std::size_t i = 0; i < own.size(); ++i) seconds[i] += own[i];
  };
  std::vector<std::thread> threads;
  threads.reserve(count);
  for (unsigned i = 0; i < count; ++i) threads.emplace_back(body, std::size_t{3} * i);
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    std::printf("%s,%.6f\n", operations()[i].name, seconds[i]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--truth") == 0) {
    print_truth();
    return 0;
  }
  calibrate_rounds();
  if (argc == 4 && std::strcmp(argv[1], "--run") == 0) {
    run_threads(static_cast<unsigned>(std::stoul(argv[2])), std::stod(argv[3]));
    return 0;
  }
  run_once();
  return 0;
}
