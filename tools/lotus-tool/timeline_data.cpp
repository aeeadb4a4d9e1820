#include "timeline_data.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "log_files.hpp"
#include "log_line.hpp"
#include "log_reader.hpp"
#include "names.hpp"
#include "nesting_order.hpp"
#include "run_model.hpp"
#include "text.hpp"
#include "tracks.hpp"

namespace lotus::tool {
namespace {

void append_leb128(std::string& out, std::uint64_t value) {
  for (; value >= 128U; value >>= 7U) out += static_cast<char>(value | 128U);
  out += static_cast<char>(value);
}

void append_zigzag(std::string& out, std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  append_leb128(out, value < 0 ? ~(bits << 1U) : bits << 1U);
}

std::string packed_operations(const log_file& file, std::int64_t first_ns, name_table& names) {
  std::string bytes;
  std::int64_t before_ns = first_ns;
  const auto emit = [&](const operation& op) {
    append_zigzag(bytes, op.start_ns - before_ns);
    append_leb128(bytes, static_cast<std::uint64_t>(op.duration_ns));
    append_leb128(bytes, op.name);
    before_ns = op.start_ns;
  };
  nesting_order order;
  read_log(file, nullptr, [&](const log_line& line) {
    if (line.kind != record_kind::op) return;
    order.push({line.start_ns, line.duration_ns, names.id(line.name)}, emit);
  });
  order.finish(emit);
  return bytes;
}

/// The batch records of every log, as JSON arrays in order of time.
std::vector<std::string> batches_by_file(const run_files& run, const run_batches& batches,
                                         std::int64_t first_ns) {
  std::vector<std::vector<record_number>> of_file(run.files.size());
  for (record_number n = 0; n < batches.records().size(); ++n) {
    const batch_record& r = batches.records()[n];
    if (r.kind != record_kind::queued) of_file[r.file].push_back(n);
  }
  std::vector<std::string> texts;
  for (auto& numbers : of_file) {
    std::stable_sort(numbers.begin(), numbers.end(), [&](record_number a, record_number b) {
      return batches.records()[a].start_ns < batches.records()[b].start_ns;
    });
    std::string text;
    for (const record_number n : numbers) {
      const batch_record& r = batches.records()[n];
      int kind = 0;
      std::int64_t duration_ns = r.duration_ns;
      if (r.kind == record_kind::wait) kind = r.is_marker() ? 3 : 1;
      if (r.kind == record_kind::consumed) {
        kind = 2;
        duration_ns = batches.step_ns(n).value_or(duration_ns);
      }
      text += (text.empty() ? "[" : ",[") + std::to_string(r.start_ns - first_ns) + ',' +
              std::to_string(duration_ns) + ',' + std::to_string(kind) + ',' +
              std::to_string(r.index % 1'000'000'000) + ']';
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

std::string arrows(const run_batches& batches, std::int64_t first_ns) {
  std::string text;
  for (const batch& b : batches.all()) {
    const batch_record* const made = batches.record(b.preprocessed);
    const batch_record* const used = batches.record(b.consumed);
    if (made == nullptr || used == nullptr) continue;
    text += (text.empty() ? "[" : ",[") + std::to_string(made->end_ns() - first_ns) + ',' +
            std::to_string(made->file) + ',' + std::to_string(used->start_ns - first_ns) + ',' +
            std::to_string(used->file) + ']';
  }
  return text;
}

}  // namespace

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    unsigned word = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      word = word << 8U | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (unsigned k = 0; k < 4; ++k) {
      text += k > bytes.size() - i ? '=' : digits[word >> (18U - 6U * k) & 63U];
    }
  }
  return text;
}

std::string timeline_json(const run_files& run, const run_batches& batches,
                          std::uint64_t operations, std::int64_t first_ns, std::int64_t last_ns,
                          name_table& names) {
  const bool too_many = operations > most_drawn_operations;
  const std::vector<std::string> batch_texts = batches_by_file(run, batches, first_ns);
  std::string text =
      R"({"span_ns":)" + std::to_string(last_ns - first_ns) + R"(,"note":)" +
      json_string(too_many ? "Operations are not drawn, there are " + std::to_string(operations) +
                                 " of them; draw a part with lotus-tool viz."
                           : "") +
      R"(,"tracks":[)";
  for (std::size_t f = 0; f < run.files.size(); ++f) {
    text += (f == 0 ? "\n{\"name\":" : ",\n{\"name\":") + json_string(log_title(run.files[f]));
    if (!batch_texts[f].empty()) text += R"(,"batches":[)" + batch_texts[f] + ']';
    if (!too_many) {
      const std::string packed = packed_operations(run.files[f], first_ns, names);
      if (!packed.empty()) text += R"(,"slices":")" + base64(packed) + '"';
    }
    text += '}';
  }
  return text + R"(],"arrows":[)" + arrows(batches, first_ns) + "]}";
}

}  // namespace lotus::tool
