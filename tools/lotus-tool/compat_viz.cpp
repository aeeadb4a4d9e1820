#include "compat_viz.hpp"

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "diagnostics.hpp"
#include "errors.hpp"
#include "log_files.hpp"
#include "log_line.hpp"
#include "log_reader.hpp"
#include "names.hpp"
#include "output_file.hpp"
#include "text.hpp"
#include "torch_trace.hpp"
#include "viz.hpp"

namespace lotus::tool {
namespace {

class compat_writer {
 public:
  compat_writer(output_file& out, const torch_trace* torch) : out_(out), torch_(torch) {}

  void begin() {
    if (torch_ == nullptr) {
      out_.write(R"({"traceEvents": [)");
      return;
    }
    base_ns_ = torch_->base_ns;
    first_ = !torch_->has_events;
    torch_->copy_head(out_, {});
  }
  void finish() {
    if (torch_ == nullptr) {
      out_.write("]}");
    } else {
      torch_->copy_rest(out_);
    }
  }

  void file(const log_file& file) {
    const std::string number = std::to_string(file.number);
    heads_.clear();
    place_ = R"(, "pid": )" + number + R"(, "tid": )" + number;
  }

  void record(const log_line& line, bool operations) {
    if (line.kind == record_kind::queued) return;
    // The original passes over every name that begins like a batch record but is none.
    if (line.kind == record_kind::op && (!operations || line.name.substr(0, 6) == "SBatch")) return;
    const std::int64_t ts = (line.start_ns - base_ns_) / 1000;
    const std::int64_t id = -1 - line.batch;
    out_.write(first_ ? head(line).substr(2) : head(line));
    first_ = false;
    char* p = out_.room(output_file::room_bytes);
    if (line.kind == record_kind::op) {
      p = put(p, R"(, "args": {}, "ts": )");
    } else {
      p = put_integer(put(p, R"(, "args": {"External id": )"), id);
      p = put(put_integer(put(p, R"(, "correlation": )"), id), R"(}, "ts": )");
    }
    p = put_integer(p, ts);
    p = put_integer(put(p, R"(, "dur": )"), line.duration_ns / 1000);
    *p++ = '}';
    out_.advance_to(p);
    if (line.kind == record_kind::preprocessed) flow("s", id, ts, "}");
    if (line.kind == record_kind::consumed) flow("f", id, ts, R"(, "bp": "e"})");
  }

 private:
  void flow(std::string_view phase, std::int64_t id, std::int64_t ts, std::string_view end) {
    char* p = put(put(out_.room(output_file::room_bytes), R"(, {"ph": ")"), phase);
    p = put(put_integer(put(p, R"(", "id": )"), id), place_);
    p = put(put_integer(put(p, R"(, "ts": )"), ts), R"(, "cat": "ac2g", "name": "ac2g")");
    out_.advance_to(put(p, end));
  }

  /// ", {" and what follows up to the args. Of operations it is kept, they come again and again.
  std::string_view head(const log_line& line) {
    std::string* text = &scratch_;
    if (line.kind == record_kind::op) {
      const std::uint32_t name = names_.id(line.name);
      if (name >= heads_.size()) heads_.resize(name + 1U);
      text = &heads_[name];
      if (!text->empty()) return *text;
    }
    *text = R"(, {"ph": "X", "cat": "user_annotation", "name": )";
    append_json_string(*text, line.name);
    *text += place_;
    return *text;
  }

  output_file& out_;
  const torch_trace* torch_;
  std::int64_t base_ns_ = 0;
  bool first_ = true;
  std::string place_;
  std::string scratch_;
  raw_name_table names_;
  std::vector<std::string> heads_;  // by name, of the present log
};

}  // namespace

int draw_compat(const viz_options& options, const compat_job& job, diagnostics& said,
                std::ostream& out) {
  output_file file(job.output, out, options.gzip);
  compat_writer writer(file, job.torch);
  bool empty = true;
  writer.begin();
  for (const run_files& run : job.runs) {
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
