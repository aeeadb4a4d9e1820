#include "report/timeline_data.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_writer.hpp"
#include "log/batch_kinds.hpp"
#include "log/log_files.hpp"
#include "log/operation_names.hpp"
#include "model/calls/nesting_order.hpp"
#include "model/leb128.hpp"
#include "model/pipeline/async_operations.hpp"
#include "model/pipeline/off_cpu.hpp"
#include "model/pipeline/side_data.hpp"
#include "model/pipeline/ways.hpp"
#include "model/run_data.hpp"
#include "model/run_model.hpp"
#include "model/tracks.hpp"

namespace lotus::tool {
namespace {

constexpr int marker_on_page = 3;  ///< behind the page numbers of batch_kinds

/// Appends base64 of bytes that come in pieces.
class base64_writer {
 public:
  explicit base64_writer(std::string& to) : to_(to) {}

  /// At most `most` bytes.
  char* room() noexcept { return bytes_ + used_; }
  void advance_to(const char* end) {
    used_ = static_cast<std::size_t>(end - bytes_);
    if (sizeof bytes_ - used_ < most) pour(used_ - used_ % 3);
  }
  void finish() { pour(used_); }

  static constexpr std::size_t most = 3 * leb128_bytes;

 private:
  void pour(std::size_t n) {
    append_base64(to_, {bytes_, n});
    std::copy(bytes_ + n, bytes_ + used_, bytes_);
    used_ -= n;
  }

  std::string& to_;
  std::size_t used_ = 0;
  char bytes_[3072];
};

/// @param name_of  the page's number of a name, by the run's.
void append_operations(std::string& text, const run_data& run, std::size_t file,
                       const std::vector<std::uint32_t>& name_of) {
  base64_writer bytes(text);
  std::int64_t before_ns = run.first_ns;
  const auto emit = [&](const operation& op) {
    char* p = put_leb128(bytes.room(), zigzag(op.start_ns - before_ns));
    p = put_leb128(p, static_cast<std::uint64_t>(op.duration_ns));
    bytes.advance_to(put_leb128(p, name_of[op.name]));
    before_ns = op.start_ns;
  };
  nesting_order order;
  run.for_each_operation(file, [&](const operation& op) { order.push(op, emit); });
  order.finish(emit);
  bytes.finish();
}

/// The batch records of every log, in order of time.
std::vector<std::vector<record_number>> batches_by_file(const run_data& run) {
  const batch_records& records = run.batches.records();
  std::vector<std::vector<record_number>> of_file(run.files->files.size());
  for (record_number n = 0; n < records.size(); ++n) {
    if (batch_kind_of(records[n].kind).page_number >= 0) of_file[records[n].file].push_back(n);
  }
  for (auto& numbers : of_file) {
    std::stable_sort(numbers.begin(), numbers.end(), [&](record_number a, record_number b) {
      return records[a].start_ns < records[b].start_ns;
    });
  }
  return of_file;
}

void write_batch(json_writer& json, const run_data& run, record_number n) {
  const batch_record& r = run.batches.records()[n];
  const batch_kind& drawn = batch_kind_of(r.kind);
  const int kind = r.is_marker() ? marker_on_page : drawn.page_number;
  time_span span{r.start_ns, r.end_ns()};
  if (drawn.lasts_a_step) span = run.batches.step(n).value_or(span);
  json.begin_array().value(span.start_ns - run.first_ns).value(span.duration_ns()).value(kind);
  json.value(r.index % 1'000'000'000).end_array();
}

/// Every counter of every process, in order of first appearance; its values in order of time.
void write_counters(json_writer& json, const run_data& run) {
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<const counter_value*>> values;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> appeared;
  std::map<std::uint32_t, std::size_t> processes_with;
  for (const counter_value& c : run.side.counters) {
    const auto [at, is_new] = values.try_emplace({c.name, c.process});
    at->second.push_back(&c);
    if (!is_new) continue;
    appeared.push_back(at->first);
    ++processes_with[c.name];
  }
  json.begin_array();
  for (const auto& counter : appeared) {
    std::string name = run.names.name(counter.first).substr(1);
    if (processes_with[counter.first] > 1) name += ", pid " + std::to_string(counter.second);
    json.newline().begin_object().member("name", name).key("values").begin_array();
    for (const counter_value* c : values[counter]) {
      json.begin_array().value(c->time_ns - run.first_ns).value(c->value).end_array();
    }
    json.end_array().end_object();
  }
  json.end_array();
}

/// Every stretch: start, duration, off_cpu_reason.
void write_off_cpu(json_writer& json, const run_data& run, std::size_t file) {
  json.key("off_cpu").begin_array();
  for (const off_cpu_stretch& s : run.side.off_cpu[file].stretches()) {
    if (s.duration_ns() <= 0) continue;
    json.begin_array().value(s.start_ns - run.first_ns).value(s.duration_ns());
    json.value(static_cast<int>(reason_of(s))).end_array();
  }
  json.end_array();
}

/// The lives of asynchronous operations, in order of start, by their names.
void write_async(json_writer& json, const run_data& run,
                 const std::vector<async_operation>& operations, name_table& names) {
  std::map<std::uint32_t, std::vector<const async_operation*>> by_name;
  for (const async_operation& op : operations) by_name[op.name].push_back(&op);
  json.newline().key("async").begin_array();
  for (const auto& [name, lives] : by_name) {
    json.newline().begin_object();
    json.member("name", names.id_of_decoded(run.names.name(name))).key("lives").begin_array();
    for (const async_operation* op : lives) {
      json.begin_array().value(op->life.start_ns - run.first_ns);
      json.value(op->life.duration_ns()).end_array();
    }
    json.end_array().end_object();
  }
  json.end_array();
}

/// Of the threads of all logs.
std::size_t count_stretches(const run_data& run) {
  std::size_t n = 0;
  for (const off_cpu_time& of : run.side.off_cpu) n += of.stretches().size();
  return n;
}

/// From every span that a batch or item was made by to where it came next; with too many operations
/// only from preprocessing to the consumer.
void write_arrows(json_writer& json, const run_data& run, bool of_stages) {
  const std::vector<making_span>& all = run.batches.making();
  const std::vector<std::uint32_t> next = next_makings(run.batches);
  json.begin_array();
  for (std::size_t m = 0; m < all.size(); ++m) {
    const making_span& from = all[m];
    if (from.file == no_file || (!of_stages && from.stage != preprocess_stage)) continue;
    std::int64_t at_ns = 0;
    std::uint32_t file = no_file;
    if (next[m] != no_making) {
      at_ns = all[next[m]].start_ns;
      file = all[next[m]].file;
    } else if (from.batch != no_making) {
      const batch& b = run.batches.all()[from.batch];
      const batch_record* const used = run.batches.record(b.consumed);
      if (used == nullptr) continue;
      const std::optional<time_span> step = run.batches.step(b.consumed);
      at_ns = step ? step->start_ns : used->start_ns;
      file = used->file;
    }
    if (file == no_file) continue;
    json.begin_array().value(from.end_ns() - run.first_ns).value(from.file);
    json.value(at_ns - run.first_ns).value(file).end_array();
  }
  json.end_array();
}

std::string not_drawn(const std::string& what, std::uint64_t count) {
  return what + " are not drawn, there are " + std::to_string(count) +
         " of them; draw a part with lotus-tool viz.";
}

}  // namespace

void append_base64(std::string& to, std::string_view bytes) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::size_t i = 0;
  const auto byte = [&bytes](std::size_t at) { return static_cast<unsigned char>(bytes[at]); };
  for (; i + 3 <= bytes.size(); i += 3) {
    const unsigned word = unsigned{byte(i)} << 16U | unsigned{byte(i + 1)} << 8U | byte(i + 2);
    const char four[] = {digits[word >> 18U], digits[word >> 12U & 63U], digits[word >> 6U & 63U],
                         digits[word & 63U]};
    to.append(four, sizeof four);
  }
  if (i == bytes.size()) return;
  const bool two = i + 2 == bytes.size();
  const unsigned word = unsigned{byte(i)} << 16U | (two ? unsigned{byte(i + 1)} << 8U : 0U);
  to += digits[word >> 18U];
  to += digits[word >> 12U & 63U];
  to += two ? digits[word >> 6U & 63U] : '=';
  to += '=';
}

std::string base64(std::string_view bytes) {
  std::string text;
  append_base64(text, bytes);
  return text;
}

void write_timeline(json_writer& json, std::string& text, const run_data& run, name_table& names) {
  const std::vector<log_file>& files = run.files->files;
  const std::vector<std::vector<record_number>> batches = batches_by_file(run);
  std::set<std::uint64_t> with_off_cpu;  // a thread's two logs have the same number
  json.begin_object().member("span_ns", run.last_ns - run.first_ns);
  std::string note;
  const auto fits = [&note](const char* what, std::uint64_t count, std::uint64_t most) {
    if (count > most) note += (note.empty() ? "" : " ") + not_drawn(what, count);
    return count <= most;
  };
  const bool draws_operations = fits("Operations", run.operations, most_drawn_operations);
  const bool draws_values = fits("Values of counters", run.side.counters.size(), most_drawn_values);
  const std::vector<async_operation> async = async_operations_of(run.side);
  const bool draws_async = fits("Asynchronous operations", async.size(), most_drawn_values);
  const bool draws_off_cpu = fits("Stretches off the CPU", count_stretches(run), most_drawn_values);
  json.member("note", note);
  std::vector<std::uint32_t> name_of;
  for (std::uint32_t n = 0; draws_operations && n < run.ops.size(); ++n) {
    name_of.push_back(names.id_of_decoded(run.names.name(n)));
  }
  json.key("tracks").begin_array();
  for (std::size_t f = 0; f < files.size(); ++f) {
    json.newline().begin_object().member("name", log_title(files[f]));
    if (!batches[f].empty()) {
      json.key("batches").begin_array();
      for (const record_number n : batches[f]) write_batch(json, run, n);
      json.end_array();
    }
    if (draws_off_cpu && run.side.has_off_cpu(static_cast<std::uint32_t>(f)) &&
        with_off_cpu.insert(files[f].number).second) {
      write_off_cpu(json, run, f);
    }
    if (draws_operations && run.has_operations(f)) {
      // Megabytes that need no escaping: appended behind the writer's back.
      json.key("slices").raw("\"");
      append_operations(text, run, f, name_of);
      text += '"';
    }
    json.end_object();
  }
  json.end_array();
  if (draws_async && !async.empty()) write_async(json, run, async, names);
  if (draws_values && !run.side.counters.empty()) {
    json.newline().key("counters");
    write_counters(json, run);
  }
  json.key("arrows");
  write_arrows(json, run, draws_operations);
  json.end_object();
}

}  // namespace lotus::tool
