#include "commands/viz/formats/speedscope_sink.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/files/output_file.hpp"
#include "commands/viz/formats/trace_sink.hpp"
#include "log/operation_names.hpp"
#include "log/shown_name.hpp"

namespace lotus::tool {

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

}  // namespace lotus::tool
