#include "lotus/format/line.hpp"

#include <memory>
#include <random>
#include <string>

#include "catch.hpp"

using lotus::detail::clock_map;
using lotus::detail::event_kind;
using lotus::detail::record;

namespace {

std::string number(std::uint64_t value) {
  char out[32];
  return {out, lotus::detail::put_number(out, value)};
}

/// Returns a clock whose ticks are nanoseconds since the Unix epoch.
std::unique_ptr<clock_map> plain_clock() {
  auto map = std::make_unique<clock_map>();
  map->begin({0, 0, 0}, {1'000'000, 1'000'000, 1'000'000});
  return map;
}

std::string line(const record& r, std::string_view name = {}) {
  const auto map = plain_clock();
  const lotus::detail::tick_converter clock{*map, nullptr};
  lotus::detail::line_formatter formatter{clock};
  char out[lotus::detail::max_line_bytes];
  return {out, formatter.format(r, name, out)};
}

}  // namespace

TEST_CASE("numbers are written as std::to_string writes them") {
  std::mt19937_64 random{7};
  for (std::uint64_t power = 1; power < 10'000'000'000'000'000'000U / 10 * 9; power *= 10) {
    for (const std::uint64_t v : {power - 1, power, power + 1, power * 9}) {
      REQUIRE(number(v) == std::to_string(v));
    }
    if (power > 1'000'000'000'000'000'000U) break;
  }
  for (int i = 0; i < 1'000'000; ++i) {
    const std::uint64_t v = random() >> (random() % 64);
    REQUIRE(number(v) == std::to_string(v));
  }
  CHECK(number(0) == "0");
  CHECK(number(~std::uint64_t{0}) == "18446744073709551615");
}

TEST_CASE("eight_digits is right for all groups of four digits in both halves") {
  for (std::uint32_t group = 0; group < 10'000; ++group) {
    char expected[9];
    char got[9] = {};
    for (const std::uint32_t value : {group, group * 10'000, group * 10'001}) {
      std::snprintf(expected, sizeof(expected), "%08u", value);
      const std::uint64_t digits = lotus::detail::eight_digits(value);
      std::memcpy(got, &digits, 8);
      REQUIRE(std::string{got} == expected);
    }
  }
}

TEST_CASE("copy_short copies texts of every length") {
  const std::string text = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  for (std::size_t n = 0; n <= text.size(); ++n) {
    std::string out(text.size(), '.');
    lotus::detail::copy_short(out.data(), text.data(), n);
    REQUIRE(out == text.substr(0, n) + std::string(text.size() - n, '.'));
  }
}

TEST_CASE("each kind of record has its own line format") {
  constexpr std::uint64_t t = 1'795'250'962'864'691'302;
  const auto of = [&](event_kind kind, std::uint64_t ns) { return record{t, t + ns, {kind, 12}}; };
  const std::string start = std::to_string(t);
  CHECK(line(of(event_kind::operation, 77), "SCrop,") == "SCrop," + start + ",77\n");
  CHECK(line(of(event_kind::batch_preprocessed, 1000)) ==
        "SBatchPreprocessed_12," + start + ",1000\n");
  CHECK(line(of(event_kind::batch_wait, 999)) == "SBatchWait_12," + start + ",999\n");
  CHECK(line(of(event_kind::batch_arrived, 0)) == "SBatchWait_12," + start + ",1000\n");
  CHECK(line(of(event_kind::batch_consumed, 0)) == "SBatchConsumed_12," + start + ",1000\n");
  CHECK(line(of(event_kind::batch_queued, 0)) == "SBatchQueued_12," + start + ",1000\n");
}

TEST_CASE("every kind has a table row, and unknown kinds become lost operations") {
  std::size_t known = 0;
  for (std::size_t number = 0; number < 256; ++number) {
    const auto kind = static_cast<event_kind>(number);
    const lotus::detail::record_kind& row = lotus::detail::kind_of({kind, 12});
    const std::string text = line({5, 1005, {kind, 12}}, "Sx,");
    if (row.kind == event_kind::none) {
      CHECK(text == "Skind_lost,5,1000\n");
      CHECK(row.role == lotus::detail::log_role::worker);
      continue;
    }
    ++known;
    CHECK(row.kind == kind);
    // Lines of side logs have another form.
    if (row.role == lotus::detail::log_role::side) continue;
    const bool named = has_name(row);
    CHECK(text.rfind(named ? "Sx,5," : std::string{row.prefix} + "12,5,", 0) == 0);
  }
  CHECK(known == 23);
  CHECK(lotus::detail::row_of(event_kind::batch_wait).task() == "BatchWait");
}

TEST_CASE("a real wait of 1000 ns is not written like an out-of-order marker") {
  const auto wait = [](std::uint64_t ns) {
    return line({5'000'000'000, 5'000'000'000 + ns, {event_kind::batch_wait, 0}});
  };
  CHECK(wait(999) == "SBatchWait_0,5000000000,999\n");
  CHECK(wait(1000) == "SBatchWait_0,5000000000,1001\n");
  CHECK(wait(1001) == "SBatchWait_0,5000000000,1001\n");
}

TEST_CASE("batch numbers up to 2^56 - 1 are written in full") {
  const std::uint64_t most = (std::uint64_t{1} << 56) - 1;
  CHECK(line({1'000'000'000, 1'000'000'001, {event_kind::batch_preprocessed, most}}) ==
        "SBatchPreprocessed_72057594037927935,1000000000,1\n");
}

TEST_CASE("start times below one second and after 2286 are written in full") {
  CHECK(line({5, 6, {event_kind::operation, 1}}, "Sx,") == "Sx,5,1\n");
  CHECK(line({999'999'999, 1'000'000'000, {event_kind::operation, 1}}, "Sx,") ==
        "Sx,999999999,1\n");
  CHECK(line({9'223'372'036'000'000'000, 9'223'372'036'000'000'001, {event_kind::operation, 1}},
             "Sx,") == "Sx,9223372036000000000,1\n");
}

TEST_CASE("spans that share a clock read meet to the nanosecond, and children stay inside") {
  auto map = std::make_unique<clock_map>();
  map->begin({0, 0, 1'700'000'000'000'000'000}, {2'600'000, 1'000'000, 1'700'000'000'001'000'000});
  map->tie({26'000'123, 10'000'031, 1'700'000'000'010'000'047});
  const lotus::detail::tick_converter clock{*map, nullptr};
  std::mt19937_64 random{3};
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t a = random() % 50'000'000;
    const std::uint64_t b = a + random() % 10'000;
    const std::uint64_t c = b + random() % 10'000;
    const auto first = clock.convert(a, b);
    const auto second = clock.convert(b, c);
    const auto whole = clock.convert(a, c);
    REQUIRE(first.start_ns + first.duration_ns == second.start_ns);
    REQUIRE(whole.start_ns == first.start_ns);
    REQUIRE(whole.start_ns + whole.duration_ns == second.start_ns + second.duration_ns);
  }
}
