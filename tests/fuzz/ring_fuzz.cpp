// Fuzzes recovery and `lotus-tool top`, which read ring files. With any bytes in a ring file, even
// if they change during the reading, the logs in its folder must get complete lines or nothing, and
// nothing outside the folder may change.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>

#include "aggregates/data/aggregated.hpp"
#include "base/diagnostics.hpp"
#include "commands/top/live_folder.hpp"
#include "forged_ring.hpp"
#include "fuzz.hpp"
#include "log/compact/compact_block.hpp"
#include "log/folder/log_files.hpp"
#include "lotus/format/record_kinds.hpp"
#include "lotus/recovery/recovery.hpp"

namespace {

namespace fs = std::filesystem;

/// A folder inside another folder. If a file is written outside of the inner folder, the test finds
/// it in the outer one.
struct workplace {
  workplace() {
    const char* const memory = "/dev/shm";
    std::string path = access(memory, W_OK) == 0 ? memory : fs::temp_directory_path().string();
    path += "/lotus_ring_fuzz_XXXXXX";
    require(mkdtemp(path.data()) != nullptr);
    outer = path;
    inner = outer / "run";
    fs::create_directory(inner);
    directory = open(inner.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    require(directory >= 0);
  }
  ~workplace() {
    close(directory);
    std::error_code ignored;
    fs::remove_all(outer, ignored);
  }
  workplace(const workplace&) = delete;
  workplace& operator=(const workplace&) = delete;

  fs::path outer;
  fs::path inner;
  int directory = -1;
};

constexpr char ring_name[] = ".lotus_ring_1_1";

/// Checks that each line of a side log is complete, which means that it has five columns.
void check_side_log(const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const std::string_view line = std::string_view(text).substr(at, end - at);
    require(std::count(line.begin(), line.end(), ',') == 4);
    const auto& kinds = lotus::detail::record_kinds;
    require(std::any_of(std::begin(kinds), std::end(kinds), [line](const auto& kind) {
      return !kind.side_begin.empty() && line.substr(0, kind.side_begin.size()) == kind.side_begin;
    }));
    at = end + 1;
  }
}

/// Checks that each block of a compact log is complete.
void check_blocks(std::string_view text) {
  lotus::detail::compact_block_header header;
  while (!text.empty()) {
    const std::size_t bytes = lotus::tool::find_block(text, header).value_or(0);
    require(bytes > 0 && bytes <= text.size());
    text.remove_prefix(bytes);
  }
}

/// Checks that the tool can read a file of aggregates without an error.
void check_sections(const fs::path& path) {
  const lotus::tool::log_file file{
      path.string(), lotus::tool::file_role::aggregated, 1, fs::file_size(path), {}};
  std::ostringstream said;
  lotus::tool::diagnostic_log diagnostics(said, false);
  for (const auto& a : lotus::tool::read_aggregates(file, diagnostics)) require(a.count > 0);
  require(diagnostics.malformed_lines() == 0);
}

/// Checks that each line of a log is complete, with a name, a start and a duration.
void check_lines(std::string_view text) {
  require(text.empty() || text.back() == '\n');
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const std::size_t comma = line.find(',');
    require(line.front() == 'S' && comma != std::string_view::npos);
    const std::string_view numbers = line.substr(comma + 1);
    require(numbers.find_first_not_of("0123456789,") == std::string_view::npos);
    const std::size_t second = numbers.find(',');
    require(second != 0 && second + 1 < numbers.size());
    require(numbers.find(',', second + 1) == std::string_view::npos);
    text.remove_prefix(end + 1);
  }
}

void check_log(const fs::path& path) {
  const std::string text = support::read_file(path);
  if (path.filename().string().rfind(lotus::detail::compact_log_start, 0) == 0) {
    return check_blocks(text);
  }
  if (path.filename().string().rfind(lotus::detail::side_log_start, 0) == 0) {
    require(text.empty() || text.back() == '\n');
    return check_side_log(text);
  }
  if (path.filename().string().rfind(lotus::detail::aggregates_file_start, 0) == 0) {
    require(text.empty() || text.back() == '\n');
    return check_sections(path);
  }
  check_lines(text);
}

/// Reads the ring as `lotus-tool top` does.
void look_as_top_does(const fs::path& ring) {
  const lotus::tool::live_ring seen = lotus::tool::read_live_ring(ring.string());
  for (const lotus::tool::ring_log& of : seen.logs) {
    if (of.role == lotus::detail::log_role::side) {
      check_side_log(of.lines);
    } else {
      check_lines(of.lines);
    }
  }
  for (const auto& [name, calls] : seen.counted) {
    require(!name.second.empty() && calls.count > 0);
  }
}

/// Converts an input to the content of a ring file. If the input begins with the magic number of
/// ring files, it is used unchanged. Otherwise it is a list of changes to a valid ring file, so
/// that most of the file stays valid. Each change consists of a position (two bytes) and eight
/// bytes to write there.
std::string ring_of(std::string_view input) {
  if (input.substr(0, 5) == "LOTUS") return std::string(input);
  support::forged_ring good;
  good.capacity = 64;
  good.records = 40;
  good.aggregates = true;
  std::string file = good.bytes();
  for (; input.size() >= 10; input.remove_prefix(10)) {
    const std::size_t place = static_cast<unsigned char>(input[0]) * std::size_t{256} +
                              static_cast<unsigned char>(input[1]);
    input.copy(file.data() + place * 8 % file.size(), 8, 2);
  }
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const workplace place;
  const int ring = openat(place.directory, static_cast<const char*>(ring_name),
                          O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  require(ring >= 0);
  const std::string file = ring_of({reinterpret_cast<const char*>(data), size});  // NOLINT
  require(write(ring, file.data(), file.size()) == static_cast<ssize_t>(file.size()));

  // For one input in eight, another thread changes and shortens the file during the reading.
  std::atomic<bool> done{false};
  std::thread changer;
  if (size > 20 && data[size - 1] % 8 == 0) {
    changer = std::thread([&] {
      for (std::size_t i = 0; !done.load(); ++i) {
        // Changes bytes at the beginning of the header, of the names or of the ring: these bytes
        // decide how the reader interprets the rest of the file.
        const std::size_t to = i % 3 * 8 + i / 3 % 64 * 8 + (i % 2) * (file.size() - 8192);
        const std::size_t from = i % (size - 8);
        if (to + 8 > file.size() || pwrite(ring, data + from, 8, static_cast<off_t>(to)) < 0)
          return;
        if (i % 50 == 49 && ftruncate(ring, static_cast<off_t>(i * 997 % file.size())) != 0) return;
        if (i % 50 == 10 && pwrite(ring, file.data(), file.size(), 0) < 0) return;
      }
    });
  }
  // Reads the ring as `lotus-tool stats` does, which counts the records before their recovery.
  {
    lotus::detail::dead_ring_file reader;
    const auto state = reader.open(place.directory, static_cast<const char*>(ring_name), false,
                                   lotus::detail::file_owners{});
    if (state == lotus::detail::dead_ring_file::state::opened) {
      reader.read_blocks();
      reader.for_each_ring([](lotus::detail::ring_copy& copy) { copy.fetch(); });
    }
  }
  // `top` sleeps for a moment if a ring is being changed, so it is tested only with every fourth
  // input.
  if (size > 0 && data[0] % 4 == 0) {
    look_as_top_does(place.inner / static_cast<const char*>(ring_name));
  }
  lotus::detail::recover_directory(place.directory, nullptr);
  done = true;
  if (changer.joinable()) changer.join();
  close(ring);

  for (const auto& entry : fs::directory_iterator(place.outer)) {
    require(entry.path().filename() == "run");
  }
  for (const auto& entry : fs::directory_iterator(place.inner)) {
    if (entry.is_directory()) {  // the folder of a loader
      for (const auto& log : fs::directory_iterator(entry.path())) check_log(log.path());
    } else if (entry.path().filename() != ring_name) {
      check_log(entry.path());
    }
    fs::remove_all(entry.path());
  }
  return 0;
}
