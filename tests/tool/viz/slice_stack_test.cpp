#include <cstdint>
#include <string>

#include "catch.hpp"
#include "commands/viz/nesting_lanes.hpp"

namespace {

/// Writes the begin of a slice as a small letter and its end as a capital letter, with the time:
/// for example "a0 b0 B5 A9". Output formats with separate events for begin and end work in the
/// same way.
struct writer {
  /// Slices nest, so the one that was opened last is closed first.
  auto closing() {
    return [this](std::int64_t at) {
      text += static_cast<char>(open.back() - 'a' + 'A');
      text += std::to_string(at) + ' ';
      open.pop_back();
    };
  }

  void slice(std::int64_t start, std::int64_t duration, char name) {
    const std::int64_t at = stack.open(start, duration, closing());
    text += std::string(1, name) + std::to_string(at) + ' ';
    open += name;
  }
  void finish() { stack.finish(closing()); }

  lotus::tool::slice_stack stack;
  std::string open;
  std::string text;
};

}  // namespace

TEST_CASE("nested and adjacent slices begin and end in order") {
  writer w;
  w.slice(0, 10, 'a');
  w.slice(0, 4, 'b');
  w.slice(4, 6, 'c');
  w.slice(12, 0, 'd');
  w.slice(12, 3, 'e');
  w.finish();
  CHECK(w.text == "a0 b0 B4 c4 C10 A10 d12 D12 e12 E15 ");
}

TEST_CASE("a slice that exceeds its parent is cut") {
  writer w;
  w.slice(0, 10, 'a');
  w.slice(5, 10, 'b');
  w.slice(20, 1, 'c');
  w.finish();
  CHECK(w.text == "a0 b5 B10 A10 c20 C21 ");
}

TEST_CASE("times never decrease, even if a slice comes late") {
  writer w;
  w.slice(0, 5, 'a');
  w.slice(8, 2, 'b');
  w.slice(3, 20, 'c');
  w.finish();
  CHECK(w.text == "a0 A5 b8 c8 C10 B10 ");
}
