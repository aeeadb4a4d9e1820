// Compares the order, callers and self times of operations with the results of a slow but simple
// algorithm, on random logs of spans that nest, overlap partly, and begin or end at the same time.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "base/index.hpp"
#include "catch.hpp"
#include "model/calls/call_stack.hpp"
#include "model/calls/nesting_times.hpp"

using namespace lotus::tool;

namespace {

std::vector<operation> random_log(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::int64_t n) {
    return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random);
  };
  const std::int64_t count = below(300);
  const std::int64_t range = 1 + below(seed % 2 == 0 ? 20 : 500);
  const std::int64_t names = 1 + below(6);
  std::vector<operation> log;
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t start = below(range);
    std::int64_t duration = below(1 + below(range));
    switch (seed % 5) {
      case 1:  // the spans end in reverse order
        start = count - i;
        break;
      case 2:  // each span is inside the next one
        start = count - i;
        duration = 2 * i;
        break;
      case 3:  // all spans overlap partly
        start = i;
        duration = count;
        break;
      default:
        break;
    }
    log.push_back({start, duration, static_cast<std::uint32_t>(below(names))});
  }
  return log;
}

/// Sorts by start. If two operations begin together, the longer one comes first. Of two equal
/// operations, the one on the later line comes first.
std::vector<operation> ordered(std::vector<operation> log) {
  std::reverse(log.begin(), log.end());
  std::stable_sort(log.begin(), log.end(), [](const operation& a, const operation& b) {
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.duration_ns > b.duration_ns;
  });
  return log;
}

bool same(const operation& a, const operation& b) {
  return a.start_ns == b.start_ns && a.duration_ns == b.duration_ns && a.name == b.name;
}

/// Finds callers by their definition: the caller of an operation is the last operation before it in
/// `ops` that is still open when it begins and does not end earlier than it.
struct defined_calls {
  std::vector<operation> ops;  // sorted by ordered()
  std::vector<std::optional<std::size_t>> parent;

  explicit defined_calls(const std::vector<operation>& log) : ops(ordered(log)) {
    for (std::size_t i = 0; i < ops.size(); ++i) {
      std::optional<std::size_t> found;
      for (std::size_t p = i; p-- > 0 && !found;) {
        const bool open = ops[p].end_ns() > ops[i].start_ns;
        if (open && ops[p].end_ns() >= ops[i].end_ns()) found = p;
      }
      parent.push_back(found);
    }
  }
  bool is_within(std::size_t i, std::uint32_t name) const {
    for (auto at = parent[i]; at; at = parent[*at]) {
      if (ops[*at].name == name) return true;
    }
    return false;
  }
};

}  // namespace

TEST_CASE("operations are emitted by start, whatever the order of the log") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    const std::vector<operation> log = random_log(seed);
    std::vector<operation> out;
    const auto emit = [&](const operation& op) { out.push_back(op); };
    nesting_order order;
    for (const operation& op : log) order.push(op, emit);
    order.finish(emit);
    CAPTURE(seed);
    const std::vector<operation> right = ordered(log);
    REQUIRE(out.size() == right.size());
    CHECK(std::equal(out.begin(), out.end(), right.begin(), same));
  }
}

TEST_CASE("an operation's caller is the innermost one that contains it, despite overlaps") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    const defined_calls right(random_log(seed));
    call_stack stack;
    std::size_t ended = 0;
    bool alike = true;
    const auto on_end = [&](const call_stack::call& call) {
      ++ended;
      for (std::size_t i = 0; i < right.ops.size(); ++i) {
        if (!same(right.ops[i], call.what)) continue;
        // If several operations have the same times and name as `call`, the one with the same
        // callers is the right one.
        const optional_index<std::uint32_t> caller =
            right.parent[i] ? optional_index<std::uint32_t>(right.ops[*right.parent[i]].name)
                            : std::nullopt;
        if (caller == call.caller && right.is_within(i, call.what.name) ==
                                         stack.is_within(call, call.what.name, std::nullopt)) {
          return;
        }
      }
      alike = false;
    };
    for (const operation& op : right.ops) stack.begin(op, op.duration_ns, on_end);
    stack.finish(on_end);
    CHECK(alike);
    CHECK(ended == right.ops.size());
  }
}

TEST_CASE("self times are right in logs whose spans are not in order of time") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    nesting_times nesting;
    std::vector<operation> apart;  // operations sorted by start
    for (const operation& op : random_log(seed)) {
      auto first = std::find_if(apart.begin(), apart.end(), [&](const operation& other) {
        return other.start_ns >= op.start_ns;
      });
      std::int64_t inside_ns = 0;
      auto last = first;
      for (; last != apart.end() && last->end_ns() <= op.end_ns(); ++last) {
        inside_ns += last->duration_ns;
      }
      apart.insert(apart.erase(first, last), op);
      CHECK(nesting.self_ns(op.start_ns, op.duration_ns) ==
            std::max<std::int64_t>(0, op.duration_ns - inside_ns));
    }
  }
}
