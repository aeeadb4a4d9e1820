#include "commands/export/pstats.hpp"

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "log/operation_names.hpp"
#include "model/calls/call_profile.hpp"

namespace lotus::tool {
namespace {

/// Appends values as marshal.load() takes them: a letter for the type, then little-endian.
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

  void write(const std::vector<called_operation>& ops) {
    call_times root;
    root.calls = root.primitive = 1;
    marshal_.begin_dict();
    for (std::uint32_t op = 0; op < ops.size(); ++op) {
      if (ops[op].all.calls == 0) continue;
      function(op);
      marshal_.begin_tuple(5);
      times(ops[op].all);
      marshal_.begin_dict();
      for (const auto& [caller, by_it] : ops[op].by_caller) {
        function(caller);
        marshal_.begin_tuple(4);
        times(by_it);
        if (!caller) root.total_ns += by_it.total_ns;
      }
      marshal_.end_dict();
    }
    function(std::nullopt);
    marshal_.begin_tuple(5);
    times(root);
    marshal_.begin_dict();
    marshal_.end_dict();
    marshal_.end_dict();
  }

 private:
  /// As cProfile names what has no source: file "~", line 0.
  /// @param op  number of its name; none: the root, which called what nothing else did.
  void function(optional_index<std::uint32_t> op) {
    marshal_.begin_tuple(3);
    marshal_.string("~");
    marshal_.integer(0);
    marshal_.string(op ? names_.name(*op) : "<all threads>");
  }
  void times(const call_times& t) {
    marshal_.integer(t.primitive);
    marshal_.integer(t.calls);
    marshal_.real(static_cast<double>(t.self_ns) * 1e-9);
    marshal_.real(static_cast<double>(t.total_ns) * 1e-9);
  }

  marshal_writer marshal_;
  const name_table& names_;
};

}  // namespace

std::string pstats_of(const std::vector<called_operation>& ops, const name_table& names) {
  std::string file;
  pstats_writer(file, names).write(ops);
  return file;
}

}  // namespace lotus::tool
