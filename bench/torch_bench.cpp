// Measures how much CPU time recording costs a libtorch data loader, in all threads of the process,
// including the thread that writes the logs. Compares a pipeline with and without recording: first
// with a dataset in which each sample takes 1 ms, as in real pipelines, then with one in which a
// sample takes almost no time. In the second case, the cost of recording is not hidden by the
// variation of the samples' times.
#include <time.h>
#include <torch/data.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <lotus/torch.hpp>
#include <string>
#include <utility>
#include <vector>

namespace {

using torch::data::samplers::SequentialSampler;

double cpu_seconds(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

/// Computes for a fixed number of rounds, so that the work is always the same.
std::uint64_t spin(std::uint64_t rounds) {
  std::uint64_t x = rounds;
  for (std::uint64_t i = 0; i < rounds; ++i) {
    x = x * 6364136223846793005U + 1442695040888963407U;
    __asm__ volatile("" : "+r"(x));
  }
  return x;
}

std::uint64_t spin_rounds_per_ms() {
  constexpr std::uint64_t rounds = 20'000'000;
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const double start = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
    spin(rounds);
    best = std::min(best, cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - start);
  }
  return static_cast<std::uint64_t>(static_cast<double>(rounds) / best / 1000);
}

struct dataset : torch::data::datasets::Dataset<dataset, std::uint64_t> {
  dataset(std::size_t samples, std::uint64_t spins) : count{samples}, rounds{spins} {}
  std::uint64_t get(std::size_t index) override { return index + spin(rounds); }
  decltype(std::declval<const Dataset&>().size()) size() const override { return count; }
  std::size_t count;
  std::uint64_t rounds;
};

struct transform : torch::data::transforms::Transform<std::uint64_t, std::uint64_t> {
  std::uint64_t apply(std::uint64_t sample) override { return sample ^ 1U; }
};

struct collation : torch::data::transforms::Collation<std::uint64_t> {
  std::uint64_t apply_batch(std::vector<std::uint64_t> samples) override { return samples.front(); }
};

/// Runs a loader without recording. As in the image classification of the Lotus paper, it has four
/// transforms and a collation. Returns the CPU seconds that this took.
double plain_seconds(const dataset& source, const torch::data::DataLoaderOptions& options) {
  const double start = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
  auto samples =
      dataset{source}.map(transform{}).map(transform{}).map(transform{}).map(transform{});
  const auto loader = torch::data::make_data_loader<SequentialSampler>(
      std::move(samples).map(collation{}), options);
  for (auto& batch : *loader) static_cast<void>(batch);
  loader->join();
  return cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
}

double traced_seconds(const dataset& source, const torch::data::DataLoaderOptions& options) {
  using lotus::torch::traced;
  const double start = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
  auto samples = traced(source)
                     .map(traced("A", transform{}))
                     .map(traced("B", transform{}))
                     .map(traced("C", transform{}))
                     .map(traced("D", transform{}));
  const auto loader = lotus::torch::make_data_loader<SequentialSampler>(
      std::move(samples).map(traced(collation{})), options);
  for (auto& batch : *loader) static_cast<void>(batch);
  loader->join();
  lotus::flush();
  return cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
}

/// Runs the pipeline `repeats` times, alternately without and with recording. Prints the median CPU
/// times and the median difference.
void compare(const char* what, std::size_t samples, std::uint64_t rounds, int repeats) {
  const dataset source{samples, rounds};
  const auto options = torch::data::DataLoaderOptions{}.batch_size(128).workers(1);
  std::vector<double> plain;
  std::vector<double> extra;
  traced_seconds(source, options);  // not measured, because the first recorded run creates files
  for (int i = 0; i < repeats; ++i) {
    plain.push_back(plain_seconds(source, options));
    extra.push_back(traced_seconds(source, options) - plain.back());
  }
  const auto per_sample_ns = [&](std::vector<double>& seconds) {
    std::sort(seconds.begin(), seconds.end());
    return seconds[seconds.size() / 2] * 1e9 / static_cast<double>(samples);
  };
  const double extra_ns = per_sample_ns(extra);
  std::printf(
      "%-18s %12.0f ns a sample as it is, %+9.0f ns recorded (%+.3f %% of 1 ms); %d times %zu\n",
      what, per_sample_ns(plain), extra_ns, extra_ns / 1e4, repeats, samples);
}

}  // namespace

int main(int argc, char** argv) {
  const int repeats = argc > 1 ? std::max(1, std::stoi(argv[1])) : 15;
  std::string directory = (std::filesystem::temp_directory_path() / "torch_bench.XXXXXX").string();
  if (mkdtemp(directory.data()) == nullptr || !lotus::start(directory + "/lotustrace_log")) {
    std::fprintf(stderr, "torch_bench: cannot write %s\n", directory.c_str());
    return 1;
  }
  compare("samples of 0 ms:", std::size_t{128} * 1024, 0, repeats);
  compare("samples of 1 ms:", std::size_t{128} * 8, spin_rounds_per_ms(), repeats);
  lotus::stop();
  std::filesystem::remove_all(directory);
  return 0;
}
