// Measures the time of lotus::start() in a directory with files of earlier processes, and for
// comparison in an empty directory. lotus::start() should take at most 5 ms. Usage:
// lotus_start_cost_bench [ROUNDS]
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "lotus/lotus.hpp"

namespace {

namespace fs = std::filesystem;

struct left {
  const char* what;
  int rings;
  std::uint32_t records;  ///< number of records in each ring
  int others;  ///< number of other files with names like those of ring files or information files
};

constexpr left cases[] = {
    {"nothing (the floor)", 0, 0, 0},
    {"one ring of 1,000,000 records", 1, 1'000'000, 0},
    {"10 rings of 8,000", 10, 8'000, 0},
    {"1,000 rings of 1,000", 1'000, 1'000, 0},
    {"1,000 damaged rings, 1,000 information files", 0, 0, 1'000},
};

lotus::options options_for(const fs::path& dir, std::uint32_t records) {
  lotus::options o;
  o.log_file = (dir / "lotustrace_log").string();
  o.ring_records = records;
  o.drain_interval_ms = 1'000'000;
  o.cpu_time = false;
  o.on_message = [](const char*) {};
  return o;
}

/// Creates the ring file that a process leaves if it is killed after `records` records. Returns its
/// path.
fs::path leave_ring(const fs::path& dir, std::uint32_t records) {
  fs::create_directories(dir);
  const pid_t pid = fork();
  if (pid == 0) {
    if (!lotus::start(options_for(dir, records))) _exit(1);
    // Shortly after start(), the library drains the rings at short intervals. Wait until the
    // interval has its final length, so that the records stay in the ring.
    usleep(500'000);
    for (std::uint32_t i = 0; i < records; ++i) LOTUS_SCOPE("Left");
    raise(SIGKILL);
  }
  waitpid(pid, nullptr, 0);
  for (const auto& entry : fs::directory_iterator(dir)) {
    if (entry.path().filename().string().rfind(".lotus_ring_", 0) == 0) return entry.path();
  }
  std::fprintf(stderr, "%s: no ring file was left\n", dir.c_str());
  std::exit(1);
}

void fill(const fs::path& dir, const left& l, const fs::path& ring) {
  fs::create_directories(dir);
  for (int i = 0; i < l.rings; ++i) {
    fs::copy_file(ring, dir / (".lotus_ring_1_" + std::to_string(i)));
  }
  for (int i = 0; i < l.others; ++i) {
    std::ofstream{dir / (".lotus_ring_2_" + std::to_string(i))} << std::string(8192, 'x');
    std::ofstream{dir / (".lotus_info_2_" + std::to_string(i))} << "namespace elsewhere 1\npid 2\n";
  }
}

/// Calls start() in a new process. Returns the time of the call in ms.
double start_ms(const fs::path& dir) {
  int ends[2];
  if (pipe(ends) != 0) std::exit(1);
  const pid_t pid = fork();
  if (pid == 0) {
    const lotus::options o = options_for(dir, 8192);
    const auto before = std::chrono::steady_clock::now();
    const bool started = lotus::start(o);
    const std::chrono::duration<double, std::milli> took =
        std::chrono::steady_clock::now() - before;
    const double ms = took.count();
    const bool passed_on = write(ends[1], &ms, sizeof(ms)) == sizeof(ms);
    _exit(started && passed_on ? 0 : 1);
  }
  close(ends[1]);
  double ms = 0;
  const bool passed_on = read(ends[0], &ms, sizeof(ms)) == sizeof(ms);
  close(ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  if (passed_on && status == 0) return ms;
  std::fprintf(stderr, "start() failed in %s\n", dir.c_str());
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::stoi(argv[1])) : 9;
  std::string place = (fs::temp_directory_path() / "lotus_start_cost_XXXXXX").string();
  if (mkdtemp(place.data()) == nullptr) return 1;
  std::printf("%-46s %9s %9s %9s\n", "left in the directory", "least ms", "median", "most");
  for (const left& l : cases) {
    fs::path ring;
    if (l.rings > 0) ring = leave_ring(fs::path{place} / "left", l.records);
    std::vector<double> took;
    for (int i = 0; i < rounds; ++i) {
      const fs::path dir = fs::path{place} / "run";
      fill(dir, l, ring);
      took.push_back(start_ms(dir));
      fs::remove_all(dir);
    }
    fs::remove_all(fs::path{place} / "left");
    std::sort(took.begin(), took.end());
    std::printf("%-46s %9.2f %9.2f %9.2f\n", l.what, took.front(), took[took.size() / 2],
                took.back());
  }
  fs::remove_all(place);
}
