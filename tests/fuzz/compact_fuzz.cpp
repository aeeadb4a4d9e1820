// Fuzzes the decoder of compact logs: it must read any block with a valid checksum without an
// error, and it must be possible to read the resulting lines again.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "fuzz.hpp"
#include "log/compact/compact_block.hpp"
#include "log/compact/compact_lines.hpp"
#include "log/log_line.hpp"
#include "log/side_line.hpp"

namespace {

using namespace lotus::tool;

void check_lines(const compact_record& record) {
  for (const file_role role : {file_role::main, file_role::worker}) {
    compact_lines lines(role);
    log_line line;
    if (!lines.line_of(record, line)) continue;
    const std::string text = std::string(line.name) + ',' + std::to_string(line.start_ns) + ',' +
                             std::to_string(line.duration_ns);
    log_line again;
    require(parse_line(text, again) == nullptr);
    require(again.batch == line.batch && again.kind == line.kind);
  }
  side_line line;
  if (!compact_lines::line_of(record, line)) return;
  std::string text;
  append_text(line, text);
  text.pop_back();
  side_line again;
  require(parse_line(text, again) == nullptr);
  require(again.kind == line.kind);
  require(again.columns[0] == line.columns[0] && again.columns[1] == line.columns[1]);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Decodes the input first unchanged, and then as blocks with corrected headers.
  lotus::detail::compact_block_header header{};
  find_block({reinterpret_cast<const char*>(data), size}, header);
  compact_decoder decoder;
  while (size > 2) {
    const std::size_t payload = std::min<std::size_t>(size - 2, 16 + data[0] * std::size_t{16});
    header = {};
    std::memcpy(header.magic, lotus::detail::compact_block_magic, sizeof header.magic);
    header.version = lotus::detail::compact_version;
    header.flags = data[1] & 1U;
    header.records = 1 + data[1];
    header.base_ns = 1'790'000'000'000'000'000;
    header.bytes = static_cast<std::uint32_t>(sizeof header + payload);
    std::string block(sizeof header, '\0');
    block.append(reinterpret_cast<const char*>(data) + 2, payload);
    std::memcpy(block.data(), &header, sizeof header);
    header.checksum = lotus::detail::block_checksum(block.data(), block.size());
    std::memcpy(block.data(), &header, sizeof header);
    require(find_block(block, header) == block.size());
    if (decoder.begin(header, block)) {
      compact_record record;
      while (decoder.next(record)) check_lines(record);
    }
    data += 2 + payload;
    size -= 2 + payload;
  }
  return 0;
}
