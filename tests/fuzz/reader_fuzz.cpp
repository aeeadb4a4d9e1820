// Fuzzes the reader of logs: it must read any bytes without an error, and reading in blocks must
// give the same records as reading line by line.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>

#include "base/diagnostics.hpp"
#include "fuzz.hpp"
#include "log/folder/log_files.hpp"
#include "log/log_line.hpp"
#include "log/log_reader.hpp"
#include "log/operation_names.hpp"

using namespace lotus::tool;

namespace {

struct tally {
  std::uint64_t records = 0;
  std::uint64_t sum = 0;

  void add(const log_line& line) {
    require(line.start_ns >= 0 && line.duration_ns >= 0);
    require(line.end_ns() >= line.start_ns);
    require(line.name.substr(0, 1) == "S");
    require(line.name.find_first_of(",\n") == std::string_view::npos);
    require((line.kind == record_kind::op) == (line.batch < 0));
    ++records;
    sum = sum * 31U + static_cast<std::uint64_t>(line.start_ns) * 7U +
          static_cast<std::uint64_t>(line.duration_ns) * 5U + line.name.size() * 3U +
          static_cast<std::uint64_t>(line.batch);
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);  // NOLINT
  static std::ostream nowhere(nullptr);
  diagnostic_log diagnostics(nowhere, false);
  log_file file;
  file.tail = text;
  tally by_blocks;
  raw_name_table names;
  read_log(file, &diagnostics, [&](const log_line& line) {
    by_blocks.add(line);
    require(names.id(line.name) == names.id(std::string(line.name)));
  });

  tally by_lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t newline = text.find('\n', at);
    const std::size_t end = newline == std::string_view::npos ? text.size() : newline;
    // Copies the line, so that sanitizers detect a read after its end.
    std::string line(text.substr(at, end - at));
    if (!line.empty() && line.back() == '\r') line.pop_back();
    log_line record;
    if (parse_line(line, record) == nullptr) by_lines.add(record);
    at = end + 1;
  }
  require(by_blocks.records == by_lines.records);
  require(by_blocks.sum == by_lines.sum);
  return 0;
}
