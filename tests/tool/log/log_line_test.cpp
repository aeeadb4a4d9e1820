#include "log/log_line.hpp"

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "catch.hpp"

using lotus::tool::log_line;
using lotus::tool::parse_line;
using lotus::tool::record_kind;

namespace {

std::string wrong(std::string_view text) {
  // Copies the text to a block of exactly its size, so that sanitizers detect a read after its end.
  const std::vector<char> exact(text.begin(), text.end());
  log_line line;
  const char* const what = parse_line({exact.data(), exact.size()}, line);
  return what != nullptr ? what : "";
}

log_line right(std::string_view text) {
  log_line line;
  INFO(text);
  REQUIRE(parse_line(text, line) == nullptr);
  return line;
}

}  // namespace

TEST_CASE("the line of an operation is parsed") {
  const log_line line = right("SRandomResizedCrop,1795250976218670248,109224822");
  CHECK(line.kind == record_kind::op);
  CHECK(line.name == "SRandomResizedCrop");
  CHECK(line.start_ns == 1795250976218670248);
  CHECK(line.duration_ns == 109224822);
  CHECK(line.batch == -1);
  CHECK_FALSE(line.blanks);
}

TEST_CASE("short numbers, blanks after commas and an empty name are parsed") {
  CHECK(right("S,1,2").name == "S");
  const log_line line = right("SToTensor, 17,\t 5");
  CHECK(line.start_ns == 17);
  CHECK(line.duration_ns == 5);
  CHECK(line.blanks);
}

TEST_CASE("the kinds of batch records are distinguished") {
  CHECK(right("SBatchPreprocessed_3,1,2").kind == record_kind::preprocessed);
  CHECK(right("SBatchWait_3,1,2").kind == record_kind::wait);
  CHECK(right("SBatchConsumed_3,1,2").kind == record_kind::consumed);
  CHECK(right("SBatchQueued_3,1,2").kind == record_kind::queued);
  CHECK(right("SBatchWait_123456789012345678,1,2").batch == 123456789012345678);
}

TEST_CASE("a line means the same in the middle of a block of lines and at its end") {
  // A line that many bytes follow is read by the fast read_usual_record().
  std::mt19937_64 random(7);
  const auto pick = [&random](std::uint64_t below) { return random() % below; };
  const std::string bytes = "S0123456789,, -.%\n\r\tab\xff";
  std::size_t usual = 0;
  std::size_t records = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::string text = "S" + std::string(pick(pick(4) == 0 ? 45 : 12), 'n') + ',';
    text += std::to_string(pick(10) == 0 ? random() : 1'700'000'000'000'000'000 + random() / 1000);
    text += ',' + std::to_string(random() >> pick(64));
    if (pick(3) == 0) text[pick(text.size())] = bytes[pick(bytes.size())];
    if (pick(9) == 0) text.erase(pick(text.size()), 1);
    log_line at_end;
    const char* const end =
        lotus::tool::internal::read_any_record(text.data(), text.data() + text.size(), at_end);
    const std::string block = text + "\nSNext,1700000000000000000,5\n" + std::string(96, '7');
    log_line line;
    const char* const fast = lotus::tool::internal::read_usual_record(block.data(), line);
    if (end != nullptr) ++records;
    if (fast == nullptr) continue;
    ++usual;
    INFO(text);
    REQUIRE(end != nullptr);
    REQUIRE(fast - block.data() == end - text.data());
    REQUIRE(line.name == at_end.name);
    REQUIRE(line.start_ns == at_end.start_ns);
    REQUIRE(line.duration_ns == at_end.duration_ns);
  }
  CHECK(usual > records / 2);
}

TEST_CASE("operations whose names begin like a batch record are operations") {
  for (const auto* name : {"SBatchWaiter", "SBatchAugment", "SBatch", "SBatchNorm_2"}) {
    const std::string text = std::string(name) + ",1,2";
    const log_line line = right(text);
    CHECK(line.kind == record_kind::op);
    CHECK(line.name == name);
  }
}

TEST_CASE("the largest times are accepted, and larger ones rejected without overflow") {
  CHECK(right("SA,9223372036854775807,0").start_ns == INT64_MAX);
  CHECK(right("SA,0,9223372036854775807").duration_ns == INT64_MAX);
  CHECK(wrong("SA,9223372036854775808,0") == "START is out of range");
  CHECK(wrong("SA,99999999999999999999,5") == "START is out of range");
  CHECK(wrong("SA,0,18446744073709551616") == "DURATION is out of range");
  CHECK(wrong("SA,9223372036854775807,1") == "START + DURATION is out of range");
  CHECK(wrong("SA," + std::string(100, '9') + ",1") == "START is out of range");
}

TEST_CASE("each malformed line is rejected with a reason") {
  CHECK(wrong("SLoad") == "one field, expected NAME,START,DURATION");
  CHECK(wrong("S") == "one field, expected NAME,START,DURATION");
  CHECK(wrong("SLoader,17") == "two fields, expected NAME,START,DURATION");
  CHECK(wrong("SLoader,17,5,7") == "more than three fields, expected NAME,START,DURATION");
  CHECK(wrong(",17,5") == "the name is empty");
  CHECK(wrong("Crop,17,5") == "the name does not begin with S");
  CHECK(wrong(" SCrop,17,5") == "the name does not begin with S");
  CHECK(wrong("SLoader,abc,5") == "START is not a whole number of nanoseconds");
  CHECK(wrong("SLoader,,5") == "START is not a whole number of nanoseconds");
  CHECK(wrong("SLoader,17,") == "DURATION is not a whole number of nanoseconds");
  CHECK(wrong("SLoader,17,5.5") == "DURATION is not a whole number of nanoseconds");
  CHECK(wrong("SLoader,17,5 ") == "DURATION is not a whole number of nanoseconds");
  CHECK(wrong("SLoader,17,-5") == "DURATION is negative");
  CHECK(wrong("SLoader,-17,5") == "START is negative");
  CHECK(wrong("SBatchWait,17,5") == "a batch record without a batch number");
  CHECK(wrong("SBatchWait_,17,5") == "the batch number is not a whole number");
  CHECK(wrong("SBatchWait_x,17,5") == "the batch number is not a whole number");
  CHECK(wrong("SBatchWait_3_7,17,5") == "the batch number is not a whole number");
  CHECK(wrong("SBatchWait_9999999999999999999,17,5") == "the batch number is out of range");
}

TEST_CASE("numbers of every length are parsed correctly") {
  std::mt19937_64 random(7);
  for (int round = 0; round < 20000; ++round) {
    const auto start = static_cast<std::int64_t>(random() >> (2 + random() % 62));
    const auto duration = static_cast<std::int64_t>(random() >> (2 + random() % 62));
    const log_line line = right("SX," + std::to_string(start) + ',' + std::to_string(duration));
    REQUIRE(line.start_ns == start);
    REQUIRE(line.duration_ns == duration);
  }
}

TEST_CASE("a wrong byte at any position in a number is rejected") {
  const std::string good = "SX,123456789012345678,12345678";
  for (std::size_t at = 3; at < good.size(); ++at) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string text = good;
      text[at] = static_cast<char>(byte);
      const bool digit = byte >= '0' && byte <= '9';
      // Skips blanks, which are allowed at the beginning of a field, and commas, which would change
      // the fields.
      if (text[at] == ',' || text[at] == ' ' || text[at] == '\t' || good[at] == ',') continue;
      INFO(text);
      REQUIRE(wrong(text).empty() == digit);
    }
  }
}
