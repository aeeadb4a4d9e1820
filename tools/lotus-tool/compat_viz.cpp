#include "compat_viz.hpp"

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "diagnostics.hpp"
#include "errors.hpp"
#include "log_files.hpp"
#include "log_line.hpp"
#include "log_reader.hpp"
#include "output_file.hpp"
#include "text.hpp"
#include "viz.hpp"

namespace lotus::tool {
namespace {

class compat_writer {
 public:
  explicit compat_writer(output_file& out) : out_(out) {}

  void begin() { out_.write("{\"traceEvents\": ["); }
  void finish() { out_.write("]}"); }

  void file(const log_file& file) {
    const std::string number = std::to_string(file.number);
    place_ = ", \"pid\": " + number + ", \"tid\": " + number;
  }

  void record(const log_line& line, bool operations) {
    if (line.kind == record_kind::queued) return;
    // The original passes over every name that begins like a batch record but is none.
    if (line.kind == record_kind::op && (!operations || line.name.substr(0, 6) == "SBatch")) return;
    const std::int64_t id = -1 - line.batch;
    separator();
    out_.write("{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": ");
    out_.write(quoted(line));
    out_.write(place_);
    if (line.kind == record_kind::op) {
      out_.write(", \"args\": {}");
    } else {
      out_.write(", \"args\": {\"External id\": ");
      integer(id);
      out_.write(", \"correlation\": ");
      integer(id);
      out_.write("}");
    }
    out_.write(", \"ts\": ");
    integer(line.start_ns / 1000);
    out_.write(", \"dur\": ");
    integer(line.duration_ns / 1000);
    out_.write("}");
    if (line.kind == record_kind::preprocessed) flow("s", id, line.start_ns, "}");
    if (line.kind == record_kind::consumed) flow("f", id, line.start_ns, ", \"bp\": \"e\"}");
  }

 private:
  void separator() {
    if (!first_) out_.write(", ");
    first_ = false;
  }

  void flow(std::string_view phase, std::int64_t id, std::int64_t at_ns, std::string_view end) {
    separator();
    out_.write("{\"ph\": \"");
    out_.write(phase);
    out_.write("\", \"id\": ");
    integer(id);
    out_.write(place_);
    out_.write(", \"ts\": ");
    integer(at_ns / 1000);
    out_.write(", \"cat\": \"ac2g\", \"name\": \"ac2g\"");
    out_.write(end);
  }

  void integer(std::int64_t value) {
    char* const to = out_.room(24);
    out_.advance_to(put_integer(to, value));
  }

  /// The name as a JSON string. Operations' names come again and again, so they are kept.
  const std::string& quoted(const log_line& line) {
    if (line.kind != record_kind::op) {
      scratch_ = json_string(line.name);
      return scratch_;
    }
    const auto [entry, is_new] = quoted_.try_emplace(std::string(line.name));
    if (is_new) entry->second = json_string(line.name);
    return entry->second;
  }

  output_file& out_;
  bool first_ = true;
  std::string place_;
  std::string scratch_;
  std::unordered_map<std::string, std::string> quoted_;
};

}  // namespace

int draw_compat(const viz_options& options, const std::vector<run_files>& runs, diagnostics& said,
                std::ostream& out) {
  output_file file(options.output, out);
  compat_writer writer(file);
  bool empty = true;
  writer.begin();
  for (const run_files& run : runs) {
    for (const log_file& log : run.files) {
      writer.file(log);
      read_log(log, &said, [&](const log_line& line) {
        empty = false;
        writer.record(line, !options.coarse);
      });
    }
  }
  writer.finish();
  const int status = said.finish(options.strict);
  if (status != exit_fine) return status;
  if (empty) throw input_error(options.dir + ": nothing usable in the logs");
  file.commit();
  return exit_fine;
}

}  // namespace lotus::tool
