#include "accelerator/trace/torch_trace.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/errors.hpp"
#include "base/files/found_file.hpp"
#include "base/text.hpp"
#include "log/folder/log_files.hpp"

namespace lotus::tool {
namespace {

namespace fs = std::filesystem;

/// Finds where the events of a trace begin and end, and which process and thread numbers they use.
/// Recognizes lotus-tool's own output.
class trace_handler final : public json_events {
 public:
  trace_handler(const byte_stream& stream, torch_trace& trace) : stream_(stream), trace_(trace) {}

  /// Returns whether the trace was written by lotus-tool or by the script of the original Lotus
  /// (the Python tool of the paper). If a run has no batches, the script's output has no batch
  /// names. It is then recognized because it contains only annotations, while a profiler also
  /// writes other events and keys.
  bool is_ours() const noexcept {
    const bool as_original = trace_.is_object && found_ && !other_keys_ && annotations_ && !others_;
    return ours_ || as_original;
  }
  bool found_events() const noexcept { return found_; }

  bool other_value() override { return value(); }

  bool whole_number(std::uint64_t number) override {
    if (wanted_ == wanted::number) trace_.numbers.insert(number);
    if (wanted_ == wanted::base && number <= INT64_MAX) {
      trace_.base_ns = static_cast<std::int64_t>(number);
    }
    return value();
  }

  bool text(std::string_view text) override {
    // Only lotus-tool and the script of the original Lotus write names that begin with "SBatch".
    ours_ = ours_ || (wanted_ == wanted::name && text.substr(0, 6) == "SBatch");
    if (wanted_ == wanted::category) (text == "user_annotation" ? annotations_ : others_) = true;
    // A number may be quoted.
    std::uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const bool is_number = !text.empty() && std::from_chars(text.data(), end, number).ptr == end;
    if (is_number) return whole_number(number);
    return value() && !ours_;
  }

  bool begin_object() override {
    if (depth_ == 0) {
      trace_.is_object = true;
      trace_.key_at = stream_.taken();
    }
    return open();
  }

  bool key(std::string_view key) override {
    wanted_ = wanted::nothing;
    if (depth_ == 1) {
      trace_.has_keys = true;
      ours_ = key == own_trace_key;
      next_is_events_ = key == "traceEvents";
      other_keys_ = other_keys_ || !next_is_events_;
      if (key == "baseTimeNanoseconds") wanted_ = wanted::base;
    } else if (depth_ == events_depth_ + 1) {
      if (key == "pid" || key == "tid") wanted_ = wanted::number;
      if (key == "name") wanted_ = wanted::name;
      if (key == "cat") wanted_ = wanted::category;
    }
    return !ours_;
  }

  bool end_object() override { return close(); }

  bool begin_array() override {
    const bool whole_array = depth_ == 0;
    const bool of_events = whole_array || (depth_ == 1 && next_is_events_);
    open();
    if (of_events) {
      in_events_ = true;
      events_depth_ = depth_;
      trace_.has_events = false;
    }
    return true;
  }

  bool end_array() override {
    if (in_events_ && depth_ == events_depth_) {
      in_events_ = false;
      found_ = true;
      const bool is_open = trace_.faults.json.of(json_repair::open_array) > 0;
      trace_.events_end = stream_.taken() - (is_open ? 0 : 1);
    }
    return close();
  }

 private:
  enum class wanted : std::uint8_t { nothing, number, name, category, base };

  bool value() {
    if (in_events_ && depth_ == events_depth_) trace_.has_events = true;
    wanted_ = wanted::nothing;
    next_is_events_ = false;
    return true;
  }
  bool open() {
    value();
    ++depth_;
    return true;
  }
  bool close() {
    --depth_;
    return true;
  }

  const byte_stream& stream_;
  torch_trace& trace_;
  std::size_t depth_ = 0;
  std::size_t events_depth_ = 0;
  bool next_is_events_ = false;
  bool in_events_ = false;
  bool found_ = false;
  bool ours_ = false;
  bool other_keys_ = false;   ///< whether there are keys other than traceEvents
  bool annotations_ = false;  ///< whether there are events of the category that Lotus writes
  bool others_ = false;       ///< whether there are events of other categories
  wanted wanted_ = wanted::nothing;
};

}  // namespace

json_scan scan_json(const std::string& path) {
  json_scan scan;
  scan.trace.path = path;
  try {
    byte_stream stream(path);
    trace_handler handler(stream, scan.trace);
    const std::optional<std::string> wrong =
        stream_json(stream, handler, &scan.trace.faults.json, &scan.trace.edits);
    if (handler.is_ours()) {
      scan.kind = json_kind::ours;
    } else if (wrong) {
      scan.what = why_no_json(path, *wrong);
    } else {
      scan.kind = handler.found_events() ? json_kind::trace : json_kind::not_trace;
    }
  } catch (const input_error& error) {
    scan.what = error.what();
  }
  return scan;
}

/// Copies from the position of `in` to the offset `until`, with the repairs there.
void torch_trace::copy(byte_stream& in, std::uint64_t until, output_file& out) const {
  const auto write = [&out](std::string_view text) { out.write(text); };
  auto edit = std::lower_bound(edits.begin(), edits.end(), in.taken(),
                               [](const json_edit& e, std::uint64_t at) { return e.at < at; });
  for (; edit != edits.end() && edit->at < until; ++edit) {
    in.pass(edit->at - in.taken(), write);
    out.write(edit->text);
    in.pass(edit->removed, [](std::string_view) {});
  }
  in.pass(until - in.taken(), write);
}

void torch_trace::copy_head(output_file& out, std::string_view key) const {
  byte_stream in(path);
  if (is_object && !key.empty()) {
    copy(in, key_at, out);
    out.write(key);
    if (has_keys) out.write(",");
  }
  copy(in, events_end, out);
  if (in.taken() != events_end) throw input_error(path + ": has changed while it was read");
}

void torch_trace::copy_rest(output_file& out) const {
  byte_stream in(path);
  in.pass(events_end, [](std::string_view) {});
  copy(in, UINT64_MAX, out);
}

std::optional<torch_trace> find_torch_trace(const std::string& dir, diagnostic_log& diagnostics) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(dir, error)) {
    const std::string name = entry.path().filename().string();
    if (!has_name_of_trace(name) || ends_with(name, ".sqlite")) continue;
    if (is_found_file(entry)) {
      paths.push_back(entry.path().string());
    } else {
      diagnostics.note(
          entry.path().string() +
          ": ignored, because it is a link or not a regular file; --torch-trace reads it");
    }
  }
  std::sort(paths.begin(), paths.end(), natural_less);
  std::optional<torch_trace> found;
  for (const std::string& path : paths) {
    json_scan scan = scan_json(path);
    switch (scan.kind) {
      case json_kind::ours:
        break;
      case json_kind::not_trace:
        diagnostics.note(path + ": ignored: not a profiler trace");
        break;
      case json_kind::broken:
        diagnostics.malformed_file("not merged", scan.what);
        break;
      case json_kind::trace:
        if (found) {
          diagnostics.warning(found->path + ": not merged, because " + path +
                              " is there too; choose with --torch-trace");
        }
        found = std::move(scan.trace);
        break;
    }
  }
  return found;
}

std::string merged_name(const std::string& path, bool coarse) {
  const fs::path full_path(path);
  const std::string name = full_path.filename().string();
  const std::string stem = name.substr(0, name.find(".json"));
  return (full_path.parent_path() / (stem + (coarse ? "_coarse.json" : "_fine.json"))).string();
}

}  // namespace lotus::tool
