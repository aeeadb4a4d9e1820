#include "commands/export/pstats.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace lotus::tool {
namespace {

/// Appends values in the format that Python's marshal.load() reads: a letter for the type, followed
/// by the value in little-endian order.
class marshal_writer {
 public:
  explicit marshal_writer(std::string& to) : to_(to) {}

  void begin_dict() { to_ += '{'; }
  void end_dict() { to_ += '0'; }
  void begin_tuple(std::uint32_t size) {
    to_ += '(';
    little_endian(size, 4);
  }
  void string(std::string_view utf8) {
    to_ += 'u';
    little_endian(utf8.size(), 4);
    to_ += utf8;
  }
  void integer(std::uint64_t value) {
    if (value <= INT32_MAX) {
      to_ += 'i';
      little_endian(value, 4);
      return;
    }
    constexpr unsigned digit_bits = 15;
    std::uint32_t digits = 0;
    for (std::uint64_t left = value; left > 0; left >>= digit_bits) ++digits;
    to_ += 'l';
    little_endian(digits, 4);
    for (; value > 0; value >>= digit_bits) little_endian(value % (1U << digit_bits), 2);
  }
  void real(double value) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    to_ += 'g';
    little_endian(bits, 8);
  }

 private:
  void little_endian(std::uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) to_ += static_cast<char>(value >> (8 * i) & 0xFFU);
  }

  std::string& to_;
};

class pstats_writer {
 public:
  pstats_writer(std::string& to, const name_table& names) : marshal_(to), names_(names) {}

  void write(const std::vector<called_operation>& ops,
             const std::vector<aggregated_op>& aggregated) {
    call_times root;
    root.calls = root.primitive = 1;
    marshal_.begin_dict();
    for (std::uint32_t op = 0; op < ops.size(); ++op) {
      if (ops[op].all.calls == 0) continue;
      recorded(ops[op], op);
      const auto outermost = ops[op].by_caller.find(std::nullopt);
      if (outermost != ops[op].by_caller.end()) root.total_ns += outermost->second.total_ns;
    }
    std::int64_t aggregated_ns = 0;
    for (const aggregated_op& op : aggregated) aggregated_ns += counted(op);
    // The sums of recorded and of aggregated operations cannot be added, because it is unknown how
    // much of the aggregated time is inside recorded operations. The root gets the larger sum,
    // because its threads spent at least this time.
    root.total_ns = std::max(root.total_ns, aggregated_ns);
    function(root_name);
    entry(root);
    marshal_.begin_dict();
    marshal_.end_dict();
    marshal_.end_dict();
  }

 private:
  static constexpr std::string_view root_name = "<all threads>";

  void recorded(const called_operation& op, std::uint32_t name) {
    function(names_.name(name));
    entry(op.all);
    marshal_.begin_dict();
    for (const auto& [caller, by_it] : op.by_caller) {
      function(caller ? std::string_view(names_.name(*caller)) : root_name);
      caller_entry(by_it);
    }
    marshal_.end_dict();
  }

  /// Writes an aggregated operation and returns its self time. Recursion and callers are not known
  /// for its calls, so all of them count as primitive (not recursive) and the root is their caller.
  std::int64_t counted(const aggregated_op& op) {
    call_times times;
    times.calls = times.primitive = op.count;
    times.self_ns = op.self_ns;
    times.total_ns = op.total_ns;
    function(op.name + " (aggregated)");
    entry(times);
    marshal_.begin_dict();
    function(root_name);
    caller_entry(times);
    marshal_.end_dict();
    return op.self_ns;
  }

  /// Writes a name as cProfile writes a function without source code: file "~", line 0.
  void function(std::string_view name) {
    marshal_.begin_tuple(3);
    marshal_.string("~");
    marshal_.integer(0);
    marshal_.string(name);
  }
  /// Writes the times of a function, without the dictionary of callers that must follow.
  void entry(const call_times& t) {
    marshal_.begin_tuple(5);
    marshal_.integer(t.primitive);
    marshal_.integer(t.calls);
    times(t);
  }
  /// Writes the times of a caller. Unlike in a function's tuple, the number of all calls comes
  /// before the number of primitive calls.
  void caller_entry(const call_times& t) {
    marshal_.begin_tuple(4);
    marshal_.integer(t.calls);
    marshal_.integer(t.primitive);
    times(t);
  }
  void times(const call_times& t) {
    marshal_.real(static_cast<double>(t.self_ns) * 1e-9);
    marshal_.real(static_cast<double>(t.total_ns) * 1e-9);
  }

  marshal_writer marshal_;
  const name_table& names_;
};

}  // namespace

std::string pstats_of(const std::vector<called_operation>& ops, const name_table& names,
                      const std::vector<aggregated_op>& aggregated) {
  std::string file;
  pstats_writer(file, names).write(ops, aggregated);
  return file;
}

}  // namespace lotus::tool
