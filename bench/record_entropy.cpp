// Estimates how small compact logs could be: the bytes per record if each number were coded
// optimally, but independently of the others. Usage: record_entropy DIR, where DIR is a run
// directory. A name costs as many bits as its frequency requires (entropy). A number costs the
// entropy of its length in bits, plus all of its bits except the first, which is always 1.
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "log/compact/compact_block.hpp"
#include "lotus/format/compact_layout.hpp"

namespace {

namespace detail = lotus::detail;

/// Returns how many bits an optimal code needs for `count` occurrences of one symbol among `all`
/// symbols.
double bits_of(std::uint64_t count, std::uint64_t all) {
  const auto n = static_cast<double>(count);
  return count == 0 ? 0 : n * std::log2(static_cast<double>(all) / n);
}

/// Statistics of numbers with the same meaning, such as the durations of one operation.
class number {
 public:
  void add_difference(std::uint64_t value) {
    add(detail::to_zigzag(detail::wrapped_difference(value, std::exchange(last_, value))));
  }
  void add(std::uint64_t value) {
    std::size_t length = 0;
    for (; value != 0; value >>= 1U) ++length;
    ++of_length_[length];
  }
  double bits() const {
    std::uint64_t all = 0;
    for (const std::uint64_t count : of_length_) all += count;
    double sum = 0;
    for (std::size_t i = 0; i < of_length_.size(); ++i) {
      const std::size_t behind_first = i > 1 ? i - 1 : 0;
      sum += bits_of(of_length_[i], all) + static_cast<double>(of_length_[i] * behind_first);
    }
    return sum;
  }

 private:
  std::array<std::uint64_t, 65> of_length_{};
  std::uint64_t last_ = 0;
};

class records {
 public:
  void add_log(const std::string& bytes) {
    lotus::tool::compact_decoder decoder;
    std::uint64_t before_ns = 0;
    detail::compact_block_header header{};
    for (std::string_view left = bytes; !left.empty();) {
      const std::optional<std::size_t> size = lotus::tool::find_block(left, header);
      if (!size || *size == 0 || *size > left.size()) break;
      lotus::tool::compact_record r;
      if (decoder.begin(header, left)) {
        while (decoder.next(r)) add(r, before_ns);
      }
      left.remove_prefix(*size);
    }
  }
  std::uint64_t count() const { return count_; }
  double bytes() const {
    double bits = end_.bits() + duration_.bits() + off_.bits() + queued_.bits();
    for (const auto& [name, of] : named_) {
      bits += bits_of(of.records, count_) + of.value.bits() + of.second.bits();
    }
    return bits / 8;
  }

 private:
  struct named {
    std::uint64_t records = 0;
    number value;
    number second;
  };

  void add(const lotus::tool::compact_record& r, std::uint64_t& before_ns) {
    ++count_;
    name_.assign(1, static_cast<char>(r.kind)).append(r.name);
    named& of = named_[name_];
    ++of.records;
    const bool lasts = detail::kind_of(r.kind).lasts();
    const auto end_ns = static_cast<std::uint64_t>(r.start_ns + (lasts ? r.duration_ns : 0));
    end_.add(
        detail::to_zigzag(detail::wrapped_difference(end_ns, std::exchange(before_ns, end_ns))));
    if (lasts) duration_.add(static_cast<std::uint64_t>(r.duration_ns));
    if (r.kind == detail::event_kind::off_cpu) {
      off_.add(r.numbers[0]);
      queued_.add(r.numbers[1] == detail::run_queue_unknown ? 0 : r.numbers[1] + 1);
    } else if (r.kind != detail::event_kind::operation) {
      of.value.add_difference(r.numbers[0]);
      of.second.add_difference(r.numbers[1]);
    }
  }

  std::map<std::string, named> named_;  ///< statistics of the records of each kind and name
  std::string name_;
  number end_;
  number duration_;
  number off_;
  number queued_;
  std::uint64_t count_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: record_entropy DIR\n");
    return 2;
  }
  records all;
  for (const auto& file : std::filesystem::directory_iterator(argv[1])) {
    if (file.path().filename().string().rfind(".lotus_compact_", 0) != 0) continue;
    std::ifstream in(file.path(), std::ios::binary);
    all.add_log({std::istreambuf_iterator<char>(in), {}});
  }
  if (all.count() == 0) {
    std::fprintf(stderr, "no compact log in %s\n", argv[1]);
    return 1;
  }
  std::printf("%.1f\n", all.bytes() / static_cast<double>(all.count()));
}
