// Tests the reader of sample files of perf and of the built-in collector. The test writes files
// with fixed numbers, which do not depend on any clock.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <lotus/sampling/perf_ring.hpp>
#include <lotus/sampling/sample_layout.hpp>
#include <sstream>
#include <string>

#include "base/diagnostics.hpp"
#include "catch.hpp"
#include "mapping/mapping.hpp"
#include "mapping/read/callgrind_reports.hpp"
#include "sampling/read/located_samples.hpp"
#include "sampling/read/sample_files.hpp"
#include "tool/tool_test.hpp"

using namespace lotus::tool;
using lotus::tool_test::temp_dir;
namespace layout = lotus::detail;

namespace {

template <class Record>
std::string bytes_of(const Record& record) {
  return {reinterpret_cast<const char*>(&record), sizeof record};  // NOLINT
}

std::string header() {
  layout::samples_file_header head{};
  std::memcpy(head.magic, layout::samples_file_magic, sizeof head.magic);
  head.layout = layout::samples_file_layout;
  head.header_bytes = sizeof head;
  return bytes_of(head);
}

template <class Record>
Record typed(std::uint32_t type) {
  Record r{};
  r.header = {type, 0, sizeof r};
  return r;
}

std::string clock(std::int64_t monotonic_ns, std::int64_t realtime_ns) {
  auto r = typed<layout::clock_record>(static_cast<std::uint32_t>(layout::own_record::clock));
  r.monotonic_ns = monotonic_ns;
  r.realtime_ns = realtime_ns;
  return bytes_of(r);
}

}  // namespace

TEST_CASE("invalid clocks in a damaged file are ignored, and no time overflows") {
  const temp_dir dir;
  const std::string path = dir.file(
      "samples", header() + clock(INT64_MIN, INT64_MAX) + clock(1000, 5000) + clock(-1, 7) +
                     clock(INT64_MAX, INT64_MIN) + clock(2000, 6000) + clock(3000, INT64_MAX));
  std::ostringstream err;
  diagnostic_log diagnostics(err, false);
  const samples_file file = read_samples(path, diagnostics);
  REQUIRE(file.clocks.size() == 2);
  CHECK(file.to_epoch_ns(0) == 4000);
  CHECK(file.to_epoch_ns(1500) == 5500);
  CHECK(file.to_epoch_ns(2500) == 6500);
  constexpr std::int64_t latest = std::int64_t{1} << 61U;
  CHECK(file.to_epoch_ns(UINT64_MAX) == latest + 4000);
  CHECK(file.to_epoch_ns(INT64_MAX) == latest + 4000);
}

TEST_CASE("perf samples with impossible times are ignored") {
  const temp_dir dir;
  const std::string perf =
      dir.file("bin/perf",
               "#!/bin/sh\nif [ \"$1\" = report ]; then\n"
               "echo '# reference time: today = 9223372036.0 (TOD) = -9223372036.0 (monotonic)'\n"
               "echo '# reference time: today = 1700000000.5 (TOD) = 1.5 (monotonic)'\nelse\n"
               "echo '1/1  9223372036.854775807:  1 cpu-clock:u:  7f f (/bin/a)'\n"
               "echo '1/1  -5.0:  1 cpu-clock:u:  7f f (/bin/a)'\n"
               "echo '1/1  2.5:  1 cpu-clock:u:  7f f (/bin/a)'\nfi\n");
  REQUIRE(::chmod(perf.c_str(), 0755) == 0);
  const std::string data = dir.file("perf.data", "PERFILE2 and no more");
  const char* const before = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe)
  const std::string old = before != nullptr ? before : "";
  ::setenv("PATH", (dir.path() + "/bin:" + old).c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  std::ostringstream err;
  diagnostic_log diagnostics(err, false);
  located_samples found;
  add_samples(data, found, diagnostics);
  ::setenv("PATH", old.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  REQUIRE(found.samples.size() == 1);
  CHECK(found.samples[0].time_ns == std::int64_t{1'700'000'001'500'000'000});
}

TEST_CASE("impossible counts in a mapping are replaced by the nearest possible ones") {
  const temp_dir dir;
  const mapping m = read_mapping(dir.file(
      "mapping.json",
      R"({"op_to_func": {"Op": ["f|a"]}, "functions": {"Op": {"f|a": {"hits": 1e300, "runs": -5}}}})"));
  CHECK(m.ops.at("Op").functions.at("f|a").hits == 1'000'000'000'000'000'000);
  CHECK(m.ops.at("Op").runs == 0);
}

TEST_CASE("a module that is a pipe is not read, and its code has no name") {
  const temp_dir dir;
  const std::string pipe = dir.path() + "/pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  std::ostringstream err;
  diagnostic_log diagnostics(err, false);
  symbol_source symbols(diagnostics);
  CHECK(symbols.at(pipe, 0, "").module == pipe);
  CHECK(err.str().find("cannot be read") != std::string::npos);
}

TEST_CASE("a ring of samples is read across its end, and unmapped as a whole") {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const int file = memfd_create("lotus_test_ring", MFD_CLOEXEC);
  REQUIRE(ftruncate(file, static_cast<off_t>(3 * page)) == 0);
  perf_event_mmap_page control{};
  control.data_tail = 2 * page - 3;
  control.data_head = 2 * page + 3;
  REQUIRE(pwrite(file, &control, sizeof control, 0) == ssize_t{sizeof control});
  REQUIRE(pwrite(file, "abc", 3, static_cast<off_t>(3 * page - 3)) == 3);
  REQUIRE(pwrite(file, "def", 3, static_cast<off_t>(page)) == 3);

  lotus::detail::perf_ring ring;
  REQUIRE(ring.map(file, 2) == 0);
  std::string seen;
  const auto keep = [&seen](const char* text, std::size_t bytes) { seen.append(text, bytes); };
  ring.drain(keep);
  ring.drain(keep);
  CHECK(seen == "abcdef");

  ring.unmap();
  close(file);
  std::ifstream maps("/proc/self/maps");
  const std::string all{std::istreambuf_iterator<char>(maps), {}};
  CHECK_FALSE(lotus::tool_test::contains(all, "lotus_test_ring"));
}
