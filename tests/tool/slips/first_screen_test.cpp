// Tests the first screen of diagnose: it must fit a terminal of 24 lines, and its numbers must
// agree.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "base/terminal/line_width.hpp"
#include "catch.hpp"
#include "tool/slips/tool_shell.hpp"
#include "tool/thread_logs.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Converts a time such as "4.437 s" to seconds.
double seconds(const std::string& number, const std::string& unit) {
  const double value = std::stod(number);
  if (unit == "ns") return value * 1e-9;
  if (unit == "us") return value * 1e-6;
  if (unit == "ms") return value * 1e-3;
  return value;
}

/// Returns how much one unit in the last digit of a number is worth.
double last_digit(const std::string& number) {
  const std::size_t point = number.find('.');
  return point == std::string::npos ? 1 : std::pow(10.0, -double(number.size() - point - 1));
}

const std::string time_text = "([0-9.]+) (ns|us|ms|s)";

/// Checks that the numbers in a title such as "30 batches in 4.437 s (6.76 batches/s)" agree.
void check_title(const std::string& screen) {
  const std::regex title("([0-9]+) batch(?:es)? in " + time_text + " \\(([0-9.]+) batches/s\\)");
  std::smatch found;
  const std::string line = screen.substr(0, screen.find("\n\n"));
  const std::string one_line = std::regex_replace(line, std::regex("\n +"), " ");
  REQUIRE(std::regex_search(one_line, found, title));
  const double run_s = seconds(found[2], found[3]);
  const double rate = std::stod(found[1]) / run_s;
  const double half = last_digit(found[4]) * 0.5 + rate * 0.001;
  CHECK(std::abs(rate - std::stod(found[4])) <= half);
}

/// Checks that each suggestion shows the run time of the title to the left of its arrow, and that
/// the predicted run time, to the right of it, is inside its interval. Suggestions whose whole
/// interval is a gain must come first. Both groups must be sorted by the predicted time.
void check_advice(const std::string& screen) {
  std::smatch title;
  REQUIRE(std::regex_search(screen, title, std::regex("in " + time_text)));
  const std::string now = title[1].str() + ' ' + title[2].str();
  const std::regex row(time_text + " -> " + time_text + " +" + time_text + " to " + time_text);
  double saved_before = HUGE_VAL;
  bool certain_so_far = true;
  std::size_t rows = 0;
  std::string name;  // a long name is on a line of its own
  for (const std::string& line : lines_of(screen)) {
    std::smatch found;
    if (!std::regex_search(line, found, row)) {
      name = line;
      continue;
    }
    const std::string before_times = found.prefix();
    if (before_times.rfind("    ", 0) != 0) {
      name = before_times;
    } else if (before_times.find_first_not_of(' ') != std::string::npos) {
      name += before_times;  // the end of a long name
    }
    INFO(line);
    ++rows;
    CHECK(found[1].str() + ' ' + found[2].str() == now);
    const double then = seconds(found[3], found[4]);
    CHECK(then < seconds(found[1], found[2]));
    CHECK(seconds(found[5], found[6]) <= then);
    CHECK(then <= seconds(found[7], found[8]));
    const bool certain = seconds(found[7], found[8]) < seconds(found[1], found[2]);
    CHECK(contains(name, "perhaps ") != certain);
    if (certain) CHECK(certain_so_far);
    // Changes are ordered by the time that they save, which counts at least 0.6 times.
    const double saved = seconds(found[1], found[2]) - then;
    constexpr double rounding = 0.02;
    if (certain == certain_so_far) CHECK(saved_before >= (0.6 - rounding) * saved);
    certain_so_far = certain;
    saved_before = saved;
  }
  CHECK(rows <= 3);
}

/// Checks that the shares add up to 100 %, and the parts in a row to the row's share.
void check_shares(const std::string& screen) {
  const std::size_t at = screen.find("critical path (% of the run)");
  REQUIRE(at != std::string::npos);
  const std::regex share("([0-9]+) %");
  int sum = 0;
  std::size_t rows = 0;
  bool rows_left_out = false;
  bool first = true;
  for (const std::string& line : lines_of(screen.substr(at))) {
    if (first) {
      first = false;
      continue;
    }
    if (line.rfind("  ", 0) != 0 || contains(line, "--wide also shows")) break;
    std::vector<int> numbers;
    for (std::sregex_iterator n(line.begin(), line.end(), share), end; n != end; ++n) {
      numbers.push_back(std::stoi((*n)[1]));
    }
    INFO(line);
    REQUIRE_FALSE(numbers.empty());
    ++rows;
    rows_left_out = rows_left_out ||
                    std::regex_search(line, std::regex("^  [0-9]+ other parts, each smaller "));
    sum += numbers.front();
    if (numbers.size() == 4) CHECK(numbers[1] + numbers[2] + numbers[3] == numbers[0]);
  }
  CHECK(sum == 100);
  if (rows_left_out) CHECK(rows >= 4);
}

void check_size(const std::string& screen) {
  CHECK(lines_of(screen).size() <= 24);
  for (const std::string& line : lines_of(screen)) {
    INFO(line);
    CHECK(line.size() <= 80);
  }
}

void check_screen(const std::string& screen) {
  check_size(screen);
  check_title(screen);
  check_advice(screen);
  check_shares(screen);
  CHECK(contains(screen, "--details"));
}

/// Returns "run long long", with so many words "long".
std::string long_name(int words) {
  std::string name = "run";
  for (int word = 0; word < words; ++word) name += " long";
  return name;
}

/// Writes a run of two workers, whose batches take twelve steps each.
/// @param slowest_ns  duration of one of the steps; 0: none is slower than usual.
void write_steps(const std::string& folder, std::int64_t slowest_ns) {
  constexpr std::int64_t begin = 1'700'000'000'000 * ms;
  std::filesystem::create_directories(folder);
  const auto line = [](const std::string& of, std::int64_t start, std::int64_t duration) {
    return of + ',' + std::to_string(start) + ',' + std::to_string(duration) + '\n';
  };
  std::string workers[2];
  std::int64_t free_at[2] = {begin, begin + 20 * ms};
  std::string consumer;
  std::int64_t step_end = begin;
  for (int batch = 0; batch < 60; ++batch) {
    const int worker = batch % 2;
    const std::int64_t start = free_at[worker];
    std::int64_t& now = free_at[worker];
    for (int step = 0; step < 12; ++step) {
      const bool is_slowest = slowest_ns > 0 && batch == 31 && step == 5;
      const std::int64_t duration = is_slowest ? slowest_ns : (12 - step) * ms / 2;
      workers[worker] += line("SStep" + std::to_string(step), now, duration);
      now += duration;
    }
    workers[worker] += line("SBatchPreprocessed_" + std::to_string(batch), start, now - start);
    const std::int64_t received = std::max(step_end, now);
    consumer += line("SBatchWait_" + std::to_string(batch), step_end, received - step_end);
    consumer += line("SBatchConsumed_" + std::to_string(batch), received, 1000);
    step_end = received + 5 * ms;
  }
  const auto write = [&](const std::string& log, const std::string& lines) {
    std::ofstream(folder + "/lotustrace_log_" + log) << lines;
  };
  write("main_pid_1", consumer);
  write("worker_pid_2", workers[0]);
  write("worker_pid_3", workers[1]);
}

}  // namespace

TEST_CASE("the first screen fits 24 lines, and its numbers agree with each other") {
  struct screen_of {
    std::string slip;
    /// The expected verdict; "" if it depends on the machine.
    std::string verdict;
    std::string words;
  };
  for (const screen_of& one :
       {screen_of{"right", "preprocessing-bound", "Why: "},
        screen_of{"oversubscribed", "", " workers"}, screen_of{"lock", "", "Fetch"},
        screen_of{"slow-steps", "consumer-bound", "the consumer's own work"},
        screen_of{"order", "", "batches"}, screen_of{"epochs", "", "60 batches in "}}) {
    const temp_dir dir;
    const std::optional<result> found = recorded_in_peace(dir, one.slip, "diagnose run");
    if (!found) return;
    const result& r = *found;
    INFO(one.slip << ":\n" << r.out << r.err);
    CHECK(r.status == 0);
    check_screen(r.out);
    CHECK(contains(r.out, one.verdict));
    CHECK(contains(r.out, one.words));
    if (one.slip == "slow-steps") CHECK(contains(r.out, "the consumer's step 2x faster"));
    // The operations of this program compute, so they wait for CPUs. Only operations that block can
    // wait for a lock or a device.
    if (one.slip == "oversubscribed") CHECK_FALSE(contains(r.out, "run at the same time"));
  }
}

TEST_CASE("the demo's recording has a first screen, and --details adds the rest") {
  const temp_dir dir;
  const std::string logs = "'" + traces() + "/c_ooo_w4'";
  const result r = shell(dir, "cp -r " + logs + " demo && lotus-tool diagnose demo");
  INFO(r.out << r.err);
  check_screen(r.out);
  const result details = shell(dir, "lotus-tool diagnose demo --details");
  // The commands under "Next:" must come at the end. The command that has just been run must not be
  // among them.
  CHECK(details.out.find(r.out.substr(0, r.out.find("\nNext:"))) == 0);
  CHECK(contains(details.out, "operation (by gain)"));
  // These logs have no CPU times, so there must be no columns for them.
  CHECK_FALSE(contains(details.out, "blocked"));
  CHECK(details.out.find("operation (by gain)") < details.out.find("\nNext:"));
  CHECK_FALSE(contains(details.out, "--details"));
  // The details must not repeat the suggestions of the first screen.
  CHECK_FALSE(contains(details.out, "First: "));
  CHECK_FALSE(contains(details.out, "or: "));
}

TEST_CASE("a long title leaves four rows of the time table, and replaces the suggested command") {
  const temp_dir dir;
  const std::string name = long_name(15);
  write_steps(dir.path() + '/' + name, 0);
  const result r = shell(dir, "lotus-tool diagnose '" + name + "'");
  INFO(r.out << r.err);
  CHECK(lines_of(r.out).size() == 24);
  CHECK_FALSE(contains(r.out, "lotus-tool whatif"));
  CHECK(std::regex_search(r.out, std::regex("\n  [0-9]+ other parts, each smaller ")));
  check_shares(r.out);
}

TEST_CASE("the time table takes the place of the slowest call, if this makes it fit") {
  struct title {
    int words;
    bool has_table;
    bool has_slowest;
  };
  // On this narrow screen, the longest title leaves no room for the table even without the call.
  for (const title& of : {title{1, true, true}, title{15, true, false}, title{30, false, true}}) {
    const temp_dir dir;
    const std::string name = long_name(of.words);
    write_steps(dir.path() + '/' + name, 400 * ms);
    const result r = shell(dir, "COLUMNS=50 lotus-tool diagnose '" + name + "'");
    INFO(r.out << r.err);
    CHECK(lines_of(r.out).size() <= 24);
    CHECK(contains(r.out, "critical path (") == of.has_table);
    CHECK(contains(r.out, "Slowest call") == of.has_slowest);
  }
}

TEST_CASE("a narrow first screen keeps the column with most of the time") {
  struct worker_time {
    std::string column;
    std::int64_t off_ms;
    std::string no_cpu_ms;
  };
  // The three cases have most of the time in different columns. Each call takes 10 ms, of which
  // each column has at least 1 ms, so no column is empty.
  for (const worker_time& most :
       {worker_time{"on CPU", 3, "1"}, worker_time{"waits for CPU", 8, "7"},
        worker_time{"blocked", 8, "1"}}) {
    const temp_dir dir;
    dir.file("run/.lotus_info_1_a", info_of_threads("cpu switches\ncpus 2\n"));
    thread_logs consumer;
    thread_logs worker;
    for (std::int64_t i = 0; i < 40; ++i) {
      worker.operation("RandomResizedCropAndColorJitter", 10 * i, 10);
      worker.off_cpu(10 * i + 9, most.off_ms, most.no_cpu_ms);
      worker.worker += columns("SBatchPreprocessed_" + std::to_string(i), 10 * i, 10) + '\n';
      consumer.wait(i, 10 * i, 10);
      consumer.consumed(i, 10 * i + 10);
    }
    consumer.write(dir, "run/", 1);
    worker.write(dir, "run/", 2);
    bool some_left_out = false;
    for (std::size_t width = 80; width >= 60; --width) {
      const result r = shell(dir, "COLUMNS=" + std::to_string(width) + " lotus-tool diagnose run");
      INFO(width << " columns:\n" << r.out);
      const std::size_t at = r.out.find("critical path");
      REQUIRE(at != std::string::npos);
      const std::string head = r.out.substr(at, r.out.find('\n', at) - at);
      CHECK(contains(head, "total"));
      CHECK(contains(head, most.column));
      for (const char* const column : {"on CPU", "waits for CPU", "blocked"}) {
        some_left_out = some_left_out || !contains(head, column);
      }
      for (const std::string& line : lines_of(r.out.substr(at))) {
        if (contains(line, "lotus-tool ")) continue;  // a command is not broken
        INFO(line);
        CHECK(lotus::tool::columns_of(line) <= width);
      }
    }
    CHECK(some_left_out);
  }
}

TEST_CASE("a warning precedes the advice") {
  const temp_dir dir;
  const result r = recorded(dir, "oversubscribed", "diagnose run");
  INFO(r.out);
  const std::size_t warning = r.out.find("Warning: ");
  REQUIRE(warning != std::string::npos);
  CHECK(warning < r.out.find("critical path (% of the run)"));
  const std::size_t advice = r.out.find("change to try");
  if (advice != std::string::npos) CHECK(warning < advice);
}

TEST_CASE("the first screen of a run without batches fits too") {
  const temp_dir dir;
  const result r = recorded(dir, "operations", "diagnose run");
  INFO(r.out);
  check_size(r.out);
  const std::regex title("run: 40 calls of 2 operations in " + time_text + "\n");
  CHECK(std::regex_search(r.out, title));
}
