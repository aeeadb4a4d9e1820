// A small pipeline that uses the features of version 0.1: two workers, one consumer, stages, a
// counter, aggregated operations. It recorded the sample runs of version 0.1, and every later 0.x
// version must compile it unchanged. Usage: recorder FOLDER text|compact
#include <atomic>
#include <chrono>
#include <cstdint>
#include <lotus/lotus.hpp>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::uint64_t batches = 12;

void sleep_ms(int n) {
  std::this_thread::sleep_for(std::chrono::milliseconds{n});
}

void build(std::uint64_t i) {
  LOTUS_BATCH_PREPROCESSED(i);
  for (std::uint64_t sample = 0; sample < 2; ++sample) {
    {
      LOTUS_SCOPE_ARGS("Read", "file=" + std::to_string(sample));
      sleep_ms(2);
    }
    {
      LOTUS_STAGE("Decode", 2 * i + sample);
      sleep_ms(1);
    }
    LOTUS_BATCH_TAKES(i, 2 * i + sample);
    for (int token = 0; token < 100; ++token) LOTUS_SCOPE_AGGREGATED("Token");
  }
  LOTUS_COUNTER("built", static_cast<double>(i));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  lotus::options options;
  options.log_file = std::string(argv[1]) + "/lotustrace_log";
  options.format =
      std::string(argv[2]) == "compact" ? lotus::log_format::compact : lotus::log_format::text;
  if (!lotus::start(options)) return 1;
  std::vector<std::atomic<bool>> ready(batches);
  std::vector<std::thread> workers;
  for (std::uint64_t w = 0; w < 2; ++w) {
    workers.emplace_back([w, &ready] {
      for (std::uint64_t i = w; i < batches; i += 2) {
        build(i);
        ready[i] = true;
      }
    });
  }
  for (std::uint64_t i = 0; i < batches; ++i) {
    {
      LOTUS_BATCH_WAIT(i);
      while (!ready[i]) sleep_ms(1);
    }
    LOTUS_BATCH_CONSUMED(i);
    sleep_ms(1);
  }
  for (std::thread& worker : workers) worker.join();
  lotus::stop();
  return lotus::dropped() == 0 ? 0 : 1;
}
