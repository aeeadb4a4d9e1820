#include "comparison/comparison_bmf.hpp"

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "comparison/conclusion.hpp"
#include "model/chance/bootstrap.hpp"

namespace lotus::tool {
namespace {

/// Makes the names of benchmarks unique. Bencher, the service that reads this output, keeps only
/// one of two members with the same name.
class benchmark_names {
 public:
  /// Returns `wanted`, shortened to what Bencher accepts, and with a number if it is already used.
  const std::string& add(std::string wanted) {
    shorten(wanted, max_bytes);
    std::string name = wanted;
    for (std::size_t number = 2; !names_.insert(name).second; ++number) {
      const std::string suffix = " (" + std::to_string(number) + ")";
      name = wanted;
      shorten(name, max_bytes - suffix.size());
      name += suffix;
    }
    return *names_.find(name);
  }

 private:
  // BenchmarkName in Bencher's library bencher_valid must have 1 to 1024 bytes.
  static constexpr std::size_t max_bytes = 1024;

  static void shorten(std::string& name, std::size_t bytes) {
    if (name.size() <= bytes) return;
    // Do not cut within a UTF-8 character.
    while (bytes > 0 && (static_cast<unsigned char>(name[bytes]) & 0xC0U) == 0x80U) --bytes;
    name.resize(bytes);
  }

  std::set<std::string> names_;
};

void write_measure(std::string_view measure, const compared_value& value,
                   const std::optional<change>& likely, json_writer& to) {
  to.begin_object().key(measure).begin_object().member("value", *value.after);
  if (likely && value.before) {
    to.member("lower_value", *value.before * (1 + likely->low));
    to.member("upper_value", *value.before * (1 + likely->high));
  }
  to.end_object().end_object();
}

}  // namespace

void write_bmf(const comparison& found, json_writer& to) {
  benchmark_names names;
  to.begin_object();
  for (const compared_loader& l : found.loaders) {
    const std::string loader = l.loader.empty() ? "" : l.loader + '/';
    if (l.batches_per_s.after) {
      to.newline().key(names.add(loader + "run"));
      write_measure("throughput", l.batches_per_s, l.rate_change, to);
    }
    for (const compared_times& r : l.rows) {
      // If there were no calls after the change, there is no mean to write.
      if (!r.typical_ns.after) continue;
      const bool of_batches = std::string_view(r.kind) == "batch";
      to.newline().key(names.add(loader + (of_batches ? "batch " : "") + title_of(r)));
      write_measure("latency", r.typical_ns, r.likely, to);
    }
  }
  to.newline().end_object();
}

}  // namespace lotus::tool
