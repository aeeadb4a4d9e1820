#include "commands/viz/compat_viz.hpp"

#include <cstdint>
#include <string_view>

#include "accelerator/trace/torch_trace.hpp"
#include "base/errors.hpp"
#include "base/files/output_file.hpp"
#include "base/formats/json_writer.hpp"
#include "base/text.hpp"
#include "log/batch_kinds.hpp"
#include "log/log_line.hpp"
#include "log/log_reader.hpp"
#include "log/operation_names.hpp"

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
    heads_.clear();
    number_ = file.number;
  }

  void record(const log_line& line, bool operations) {
    if (line.kind != record_kind::op && !batch_kind_of(line.kind).in_original) return;
    // The original Lotus's script ignores operations whose names begin like batch records.
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
    if (line.kind == record_kind::op) return;
    switch (batch_kind_of(line.kind).arrow) {
      case arrow_end::none:
        break;
      case arrow_end::leaves:
        flow("s", id, ts);
        break;
      case arrow_end::arrives:
        flow("f", id, ts);
        break;
    }
  }

 private:
  void flow(std::string_view phase, std::int64_t id, std::int64_t ts) {
    scratch_ = ", ";
    json_writer to(scratch_, json_style::spaced);
    to.begin_object().member("ph", phase).member("id", id);
    to.member("pid", number_).member("tid", number_).member("ts", ts);
    to.member("cat", "ac2g").member("name", "ac2g");
    if (phase == "f") to.member("bp", "e");
    to.end_object();
    out_.write(scratch_);
  }

  /// Returns the text of an event from the separator ", {" to the member before "args". The text is
  /// stored for each operation, because all events of an operation begin with it.
  std::string_view head(const log_line& line) {
    std::string* text = &scratch_;
    if (line.kind == record_kind::op) {
      const std::uint32_t name = names_.id(line.name);
      if (name >= heads_.size()) heads_.resize(name + 1U);
      text = &heads_[name];
      if (!text->empty()) return *text;
    }
    *text = ", ";
    json_writer to(*text, json_style::spaced);
    to.begin_object().member("ph", "X").member("cat", "user_annotation").member("name", line.name);
    to.member("pid", number_).member("tid", number_);
    return *text;
  }

  output_file& out_;
  const torch_trace* torch_;
  std::int64_t base_ns_ = 0;
  bool first_ = true;
  std::uint64_t number_ = 0;  // number in the current log's name
  std::string scratch_;
  raw_name_table names_;
  // The beginning of the events of each name in the current log, by the number of the name.
  std::vector<std::string> heads_;
};

}  // namespace

int draw_compat(const viz_options& options, const compat_job& job, diagnostic_log& diagnostics,
                std::ostream& out) {
  output_file file(job.output, out, options.gzip);
  compat_writer writer(file, job.torch);
  bool empty = true;
  writer.begin();
  for (const run_files& run : job.runs) {
    for (const log_file& log : run.files) {
      writer.file(log);
      read_log(log, &diagnostics, [&](const log_line& line) {
        empty = false;
        writer.record(line, !options.coarse);
      });
    }
  }
  writer.finish();
  const int status = diagnostics.finish(options.strict);
  if (status != exit_fine) return status;
  if (empty) throw input_error(options.dir + ": the logs contain nothing usable");
  file.commit();
  return exit_fine;
}

}  // namespace lotus::tool
