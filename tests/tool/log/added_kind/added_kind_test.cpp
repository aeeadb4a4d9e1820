// Tests that a new kind of record needs only a new row in the table of kinds, and no other change
// to the code that reads and writes logs. This test is compiled with the headers that
// add_kinds.cmake creates.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "../drained_records.hpp"
#include "catch.hpp"
#include "log/compact/compact_block.hpp"
#include "log/compact/compact_lines.hpp"
#include "log/log_line.hpp"
#include "log/side_line.hpp"

using namespace lotus::tool;
using namespace lotus::tool_test;
using detail::event_kind;

namespace {

constexpr auto main_log = static_cast<std::size_t>(detail::log_role::main);
constexpr auto worker_log = static_cast<std::size_t>(detail::log_role::worker);
constexpr auto side_log = static_cast<std::size_t>(detail::log_role::side);

/// Returns records of all kinds that the library has, mixed with records of the new kinds.
std::vector<detail::record> records_with_new_kinds() {
  std::vector<detail::record> records = random_records(3, 20);
  for (std::uint64_t i = 0; i < 300; ++i) {
    const std::uint64_t at = 1'000'000'000'000 + i * 1000;
    const auto counted = static_cast<std::int64_t>(i * i) * (i % 2 == 0 ? 1 : -1);
    records[i * 50] = {at, at, {event_kind::batch_dropped, i * 3}};
    records[i * 50 + 1] = {
        at,
        static_cast<std::uint64_t>(counted),
        {event_kind::gauge, 1 + static_cast<std::uint32_t>(i % 5), static_cast<std::uint32_t>(i)}};
  }
  return records;
}

/// Returns the lines of compact blocks as text.
std::vector<std::string> lines_of(std::string_view blocks) {
  std::vector<std::string> text(detail::log_roles);
  compact_decoder decoder;
  compact_lines main(file_role::main);
  compact_lines worker(file_role::worker);
  detail::compact_block_header header{};
  while (!blocks.empty()) {
    const std::size_t bytes = find_block(blocks, header).value_or(0);
    REQUIRE(bytes - 1 < blocks.size());
    REQUIRE(decoder.begin(header, blocks.substr(0, bytes)));
    compact_record record;
    log_line line;
    side_line side;
    while (decoder.next(record)) {
      if (main.line_of(record, line)) append_text(line, text[main_log]);
      if (worker.line_of(record, line)) append_text(line, text[worker_log]);
      if (compact_lines::line_of(record, side)) append_text(side, text[side_log]);
    }
    REQUIRE(decoder.error() == nullptr);
    blocks.remove_prefix(bytes);
  }
  return text;
}

/// Calls on_line for each line of a text log. Fails the test if the reader rejects a line.
template <class Line, class OnLine>
void read_text(const std::string& text, OnLine&& on_line) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const std::string_view one = std::string_view(text).substr(at, end - at);
    Line line;
    INFO(one);
    REQUIRE(parse_line(one, line) == nullptr);
    std::string again;
    append_text(line, again);
    REQUIRE(again == std::string(one) + '\n');
    on_line(line);
    at = end + 1;
  }
}

}  // namespace

TEST_CASE("both readers read a new kind of record from both log formats") {
  const both recorded = record_both(records_with_new_kinds(), 500);

  std::vector<std::int64_t> dropped;
  read_text<log_line>(recorded.text[main_log], [&](const log_line& line) {
    if (line.kind == record_kind::dropped) dropped.push_back(line.batch);
  });
  std::vector<std::pair<std::int64_t, std::uint64_t>> gauged;
  read_text<side_line>(recorded.text[side_log], [&](const side_line& line) {
    if (line.kind == event_kind::gauge) gauged.emplace_back(line.value(), line.count());
  });
  REQUIRE(dropped.size() >= 300);
  REQUIRE(gauged.size() >= 300);
  const std::string first = "SBatchDropped_3,1000000001000,1000\n";
  CHECK(recorded.text[main_log].find(first) != std::string::npos);
  CHECK(recorded.text[side_log].find("gauge," + name_of(2) + "1000000001000,-1,1\n") !=
        std::string::npos);

  const std::vector<std::string> text = lines_of(recorded.compact);
  for (std::size_t i = 0; i < detail::log_roles; ++i) {
    const bool same = text[i] == recorded.text[i];
    INFO("log " << i);
    CHECK(same);
  }
}

TEST_CASE("the table of kinds says how a new kind is drawn") {
  CHECK(batch_kind_of(record_kind::dropped).line_prefix == "SBatchDropped");
  CHECK(batch_kind_of(record_kind::dropped).instant);
  CHECK_FALSE(batch_kind_of(record_kind::dropped).lasts_a_step);
  CHECK(kind_of_line(event_kind::batch_dropped) == record_kind::dropped);
  CHECK(kind_of_line(event_kind::gauge) == record_kind::op);
}
