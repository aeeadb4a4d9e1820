// Tests reading a part of a long run: little of the logs may be read, and no record of this part
// may be missed.
#include "log/window/log_window.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "base/diagnostics.hpp"
#include "catch.hpp"
#include "log/folder/log_files.hpp"
#include "log/log_reader.hpp"
#include "lotus/format/compact_layout.hpp"
#include "lotus/record/record.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool_test;
using namespace lotus::tool;
namespace layout = lotus::detail;

namespace {

constexpr std::int64_t second = 1'000'000'000;
constexpr std::int64_t begin_ns = 1'700'000'000 * second;
constexpr std::int64_t run_s = 4000;

using logged = std::tuple<std::string, std::int64_t, std::int64_t>;

/// Returns records at intervals of 10 ms. Every hundredth record is late: it is written three
/// seconds after its span ended.
std::vector<logged> records_of(int worker) {
  std::vector<logged> all;
  for (std::int64_t i = 0; i < run_s * 100; ++i) {
    const std::int64_t late_ns = i % 100 == 99 ? 3 * second : 0;
    const std::int64_t lasts_ns = (i % 50 == 0 ? 400 : 5) * 1'000'000;
    all.emplace_back("SLoad" + std::to_string(worker),
                     begin_ns + i * 10'000'000 - lasts_ns - late_ns, lasts_ns);
  }
  return all;
}

std::string text_of(const std::vector<logged>& records) {
  std::string text;
  for (const auto& [name, start, lasts] : records) {
    text += name + ',' + std::to_string(start) + ',' + std::to_string(lasts) + '\n';
  }
  return text;
}

/// Returns compact blocks with a thousand records each. Every fourth block begins a new chain,
/// which means that it depends on no earlier block.
std::string blocks_of(const std::vector<logged>& records) {
  std::string log;
  for (std::size_t first = 0; first < records.size(); first += 1000) {
    std::string block(sizeof(layout::compact_block_header), '\0');
    layout::compact_block_header head{};
    std::memcpy(head.magic, layout::compact_block_magic, sizeof(head.magic));
    const bool anew = first % 4000 == 0;
    head.version = layout::compact_version;
    head.flags = anew ? layout::compact_begins_anew : 0;
    head.roles = 1U << 1U;
    head.first_ns = INT64_MAX;
    head.last_ns = INT64_MIN;
    const auto put = [&block](std::uint64_t value) {
      char bytes[10];
      block.append(bytes, layout::put_varint(bytes, value));
    };
    std::int64_t time_ns = 0;
    for (std::size_t i = first; i < first + 1000; ++i) {
      const auto& [name, start, lasts] = records[i];
      if (i == first) head.base_ns = time_ns = start + lasts;
      if (i == first && anew) {
        put(layout::announcement_code);
        put(static_cast<std::uint64_t>(layout::event_kind::operation));
        put(name.size() + 1);
        block += name + ',';
      }
      put(layout::first_named_code);
      char time[20];
      const auto since = static_cast<std::uint64_t>(start + lasts - time_ns);
      block.append(time, layout::put_time(time, since, static_cast<std::uint64_t>(lasts)));
      put(static_cast<std::uint64_t>(lasts));
      time_ns = start + lasts;
      head.first_ns = std::min(head.first_ns, start);
      head.last_ns = std::max(head.last_ns, time_ns);
    }
    head.records = 1000;
    head.bytes = static_cast<std::uint32_t>(block.size());
    std::memcpy(block.data(), &head, sizeof(head));
    head.checksum = layout::block_checksum(block.data(), block.size());
    std::memcpy(block.data(), &head, sizeof(head));
    log += block;
  }
  return log;
}

std::multiset<logged> within(const std::vector<logged>& records, const time_window& window) {
  std::multiset<logged> found;
  for (const logged& r : records) {
    if (window.has(std::get<1>(r), std::get<1>(r) + std::get<2>(r))) found.insert(r);
  }
  return found;
}

std::vector<logged> read_all(const run_files& run, diagnostic_log& diagnostics) {
  std::vector<logged> found;
  for (const log_file& file : run.files) {
    read_log(file, &diagnostics, [&](const log_line& line) {
      found.emplace_back(std::string(line.name), line.start_ns, line.duration_ns);
    });
  }
  return found;
}

struct narrowed {
  run_files run;
  std::vector<logged> read;
  std::string said;
};

narrowed narrow_folder(const std::string& dir, const wanted_part& part) {
  std::ostringstream err;
  diagnostic_log diagnostics(err, false);
  narrowed found{find_runs(dir, default_prefix, diagnostics).front(), {}, {}};
  narrow(found.run, part, diagnostics, 0);
  found.read = read_all(found.run, diagnostics);
  found.said = err.str();
  return found;
}

/// Writes the logs of two threads, and returns the records of both.
std::vector<logged> write_run(const temp_dir& dir, bool compact) {
  std::vector<logged> all;
  for (const int worker : {1, 2}) {
    const std::vector<logged> records = records_of(worker);
    all.insert(all.end(), records.begin(), records.end());
    const std::string start = compact ? ".lotus_compact_lotustrace_log" : "lotustrace_log_worker";
    dir.file(start + "_pid_" + std::to_string(worker),
             compact ? blocks_of(records) : text_of(records));
  }
  return all;
}

// Start of the first span whose record follows records with later times.
constexpr std::int64_t first_ns = begin_ns + 990'000'000 - 3 * second - 5'000'000;
constexpr std::int64_t last_ns = begin_ns + run_s * second - 20'000'000;

}  // namespace

TEST_CASE("for a window, only the logs around it are read") {
  const temp_dir dir;
  const bool compact = GENERATE(false, true);
  CAPTURE(compact);
  const std::vector<logged> all = write_run(dir, compact);
  const time_window wanted =
      GENERATE(time_window{last_ns - 10 * second, {}}, time_window{{}, first_ns + 5 * second},
               time_window{first_ns + 1000 * second, first_ns + 1001 * second});
  wanted_part part;
  if (!wanted.to_ns) {
    part.last_ns = last_ns - *wanted.from_ns;
  } else {
    part.to = window_end{*wanted.to_ns - first_ns};
    if (wanted.from_ns) part.from = window_end{*wanted.from_ns - first_ns};
  }
  const narrowed found = narrow_folder(dir.path(), part);
  REQUIRE(found.run.window);
  CHECK(found.run.window->run_first_ns == first_ns);
  CHECK(found.run.window->run_last_ns == last_ns);
  CHECK(within(found.read, wanted) == within(all, wanted));
  CHECK(10 * found.read.size() < all.size());
  CHECK(contains(found.said, "are left out, even if") == wanted.to_ns.has_value());
  CHECK_FALSE(contains(found.said, "malformed"));
}

TEST_CASE("a small run is read completely") {
  const temp_dir dir;
  dir.file("lotustrace_log_worker_pid_1", text_of(records_of(1)));
  std::ostringstream err;
  diagnostic_log diagnostics(err, false);
  run_files run = find_runs(dir.path(), default_prefix, diagnostics).front();
  wanted_part part;
  part.last_ns = second;
  narrow(run, part, diagnostics);
  CHECK_FALSE(run.window);
  CHECK(run.files.front().first == 0);
}

TEST_CASE("older parts of a log are skipped if the window begins after them") {
  const temp_dir dir;
  const std::vector<logged> all = records_of(1);
  const std::vector<logged> older(all.begin(), all.begin() + 100'000);
  const std::vector<logged> newer(all.begin() + 100'000, all.end());
  dir.file("lotustrace_log_worker_pid_1.1", text_of(older));
  dir.file("lotustrace_log_worker_pid_1", text_of(newer));
  wanted_part part;
  part.from = window_end{2000 * second};
  part.to = window_end{2001 * second};
  const narrowed behind = narrow_folder(dir.path(), part);
  REQUIRE(behind.run.window);
  CHECK(behind.run.window->run_first_ns == first_ns);
  CHECK(behind.run.files.front().older.empty());
  const time_window wanted{first_ns + 2000 * second, first_ns + 2001 * second};
  CHECK(within(behind.read, wanted) == within(all, wanted));
  part.from = window_end{500 * second};
  part.to = window_end{501 * second};
  const narrowed within_it = narrow_folder(dir.path(), part);
  const time_window early{first_ns + 500 * second, first_ns + 501 * second};
  CHECK(within(within_it.read, early) == within(all, early));
  CHECK(within_it.run.files.front().bytes < 8192);
}

TEST_CASE("damaged lines in a window are reported by byte position") {
  const temp_dir dir;
  std::string text = text_of(records_of(1));
  const std::size_t near_end = text.find('\n', text.size() - 4000) + 1;
  text.insert(near_end, "SLoad1,damaged\n");
  dir.file("lotustrace_log_worker_pid_1", text);
  wanted_part part;
  part.last_ns = 5 * second;
  const narrowed found = narrow_folder(dir.path(), part);
  CHECK(contains(found.said, "(from byte "));
}

TEST_CASE("times_of_line returns the end of the span on a line of a log or side log") {
  CHECK(times_of_line("stage,SDecode,100,20,7", true)->end_ns == 120);
  CHECK(times_of_line("counter,SQueue,100,20,0", true)->end_ns == 100);
  CHECK_FALSE(times_of_line("SDecode,100,20", true));
  CHECK(times_of_line("SDecode,100,20", false)->end_ns == 120);
}
