// Writes speedscope's evented format, which shows flame graphs over time and aggregated by name.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files/output_file.hpp"
#include "base/formats/json_writer.hpp"
#include "commands/viz/formats/trace_sink.hpp"
#include "commands/viz/formats/viz_formats.hpp"
#include "commands/viz/nesting_lanes.hpp"
#include "log/operation_names.hpp"
#include "log/shown_name.hpp"

namespace lotus::tool {
namespace {

/// Writes a profile for each thread, with times in ns relative to the base. The format can only
/// represent work of a single thread, so instants, arrows, counters, the verdict and the critical
/// path are omitted. An asynchronous operation is written only for the times when it ran on a
/// thread. Time off the CPU is also omitted, because it is part of the operations' times.
class speedscope_sink final : public trace_sink {
 public:
  /// The sink does not own its arguments; both must outlive it. The caller commits `out`.
  speedscope_sink(output_file& out, const name_table& names) : out_(out), names_(names) {}

  void begin(std::int64_t base_ns) override;
  void process(std::uint32_t pid, std::string_view name, std::uint32_t order) override;
  void thread(track where, std::string_view name, std::uint32_t order) override;
  void thread_below(track where, track of, std::string_view name, std::uint32_t order) override;
  void process_track(track where, std::string_view name, std::uint32_t order) override;
  void operation(track where, std::uint32_t name, std::int64_t start_ns,
                 std::int64_t duration_ns) override;
  void slice(const slice_event& event) override;
  void async(const async_event& event) override;
  void counter(std::uint32_t pid, std::string_view name, std::int64_t at_ns,
               std::int64_t value) override;
  void finish() override;

 private:
  void add_slice(track where, std::uint32_t frame, std::int64_t start_ns, std::int64_t duration_ns);
  void event(char type, std::uint32_t frame, std::int64_t at_ns);
  void end_profile();
  void write_text();
  std::uint32_t frame_of(std::string_view name);

  output_file& out_;
  std::string text_;  // text that was not written to `out_` yet
  json_writer to_{text_};
  const name_table& names_;
  std::int64_t base_ns_ = 0;
  std::string title_;  // names of all processes
  // For each profile, the sum of its operations' durations in ns.
  std::vector<std::int64_t> operations_ns_;
  std::map<std::uint32_t, std::string> processes_;
  std::map<std::uint32_t, std::string> threads_;  // names of threads by tid
  std::vector<std::string> frames_;
  std::map<std::string, std::uint32_t, std::less<>> frame_numbers_;
  // Frame number by name; UINT32_MAX: the name has no frame yet.
  std::vector<std::uint32_t> frame_of_name_;
  std::uint32_t tid_ = 0;  // tid of the thread whose profile is being written; 0: none
  std::int64_t last_ns_ = 0;
  slice_stack<std::uint32_t> open_;
};

void speedscope_sink::begin(std::int64_t base_ns) {
  base_ns_ = base_ns;
  to_.begin_object().member("$schema", "https://www.speedscope.app/file-format-schema.json");
  to_.member("exporter", "lotus-tool " LOTUS_TOOL_VERSION).key("profiles").begin_array();
  write_text();
}

void speedscope_sink::write_text() {
  out_.write(text_);
  text_.clear();
}

void speedscope_sink::process(std::uint32_t pid, std::string_view name, std::uint32_t /*order*/) {
  title_ += (title_.empty() ? "" : ", ") + std::string(name);
  processes_[pid] = name;
}

void speedscope_sink::thread(track where, std::string_view name, std::uint32_t /*order*/) {
  threads_[where.tid] = processes_[where.pid] + ": " + std::string(name);
}

void speedscope_sink::thread_below(track where, track /*of*/, std::string_view name,
                                   std::uint32_t order) {
  thread(where, name, order);
}

void speedscope_sink::process_track(track where, std::string_view name, std::uint32_t order) {
  thread(where, name, order);
}

std::uint32_t speedscope_sink::frame_of(std::string_view name) {
  const auto known = frame_numbers_.find(name);
  if (known != frame_numbers_.end()) return known->second;
  const auto number = static_cast<std::uint32_t>(frames_.size());
  frames_.emplace_back(name);
  frame_numbers_.emplace(name, number);
  return number;
}

void speedscope_sink::event(char type, std::uint32_t frame, std::int64_t at_ns) {
  last_ns_ = at_ns - base_ns_;
  to_.newline().begin_object().member("type", std::string_view(&type, 1));
  to_.member("frame", frame).member("at", last_ns_).end_object();
  write_text();
}

void speedscope_sink::end_profile() {
  if (tid_ == 0) return;
  open_.finish([this](std::int64_t at_ns, std::uint32_t frame) { event('C', frame, at_ns); });
  to_.end_array().member("startValue", 0).member("endValue", last_ns_).end_object();
}

void speedscope_sink::add_slice(track where, std::uint32_t frame, std::int64_t start_ns,
                                std::int64_t duration_ns) {
  if (where.tid != tid_) {
    end_profile();
    tid_ = where.tid;
    last_ns_ = 0;
    operations_ns_.push_back(0);
    to_.newline().begin_object().member("type", "evented").member("unit", "nanoseconds");
    to_.member("name", threads_[tid_]).key("events").begin_array();
  }
  const std::int64_t at_ns =
      open_.open(start_ns, duration_ns, frame,
                 [this](std::int64_t ns, std::uint32_t ended) { event('C', ended, ns); });
  event('O', frame, at_ns);
}

void speedscope_sink::operation(track where, std::uint32_t name, std::int64_t start_ns,
                                std::int64_t duration_ns) {
  if (name >= frame_of_name_.size()) frame_of_name_.resize(names_.size(), UINT32_MAX);
  std::uint32_t& frame = frame_of_name_[name];
  if (frame == UINT32_MAX) frame = frame_of(shown_name(names_.name(name)));
  add_slice(where, frame, start_ns, duration_ns);
  operations_ns_.back() += duration_ns;
}

void speedscope_sink::slice(const slice_event& event) {
  const bool is_thread_time =
      event.category != "cpu" && event.category != "path" && event.category != "verdict";
  if (event.instant || !is_thread_time) return;
  add_slice(event.where, frame_of(event.name), event.start_ns, event.duration_ns);
  if (event.category == "op") operations_ns_.back() += event.duration_ns;
}

void speedscope_sink::async(const async_event& /*event*/) {}

void speedscope_sink::counter(std::uint32_t /*pid*/, std::string_view /*name*/,
                              std::int64_t /*at_ns*/, std::int64_t /*value*/) {}

void speedscope_sink::finish() {
  end_profile();
  to_.newline().end_array().key("shared").begin_object().key("frames").begin_array();
  for (const std::string& frame : frames_) {
    to_.newline().begin_object().member("name", frame).end_object();
  }
  to_.newline().end_array().end_object().member("name", title_);
  // The viewer first shows the thread whose operations take the most time in total. A consumer
  // mostly waits, so its profile would show little.
  const auto most = std::max_element(operations_ns_.begin(), operations_ns_.end());
  to_.member("activeProfileIndex", most - operations_ns_.begin()).end_object();
  write_text();
  out_.write("\n");
}

}  // namespace

std::unique_ptr<trace_sink> make_speedscope(output_file& file, const name_table& names,
                                            const torch_trace* /*torch*/) {
  return std::make_unique<speedscope_sink>(file, names);
}

}  // namespace lotus::tool
