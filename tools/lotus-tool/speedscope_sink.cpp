#include "speedscope_sink.hpp"

#include <cstdint>
#include <string>
#include <string_view>

#include "names.hpp"
#include "output_file.hpp"
#include "text.hpp"
#include "trace_sink.hpp"

namespace lotus::tool {

void speedscope_sink::begin(std::int64_t base_ns) {
  base_ns_ = base_ns;
  out_.write(R"({"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":)");
  out_.write(json_string("lotus-tool " LOTUS_TOOL_VERSION));
  out_.write(R"(,"profiles":[)");
}

void speedscope_sink::process(std::uint32_t pid, std::string_view name, std::uint32_t /*order*/) {
  processes_[pid] = name;
}

void speedscope_sink::thread(track where, std::string_view name, std::uint32_t /*order*/) {
  threads_[where.tid] = processes_[where.pid] + ": " + std::string(name);
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
  if (!first_event_) out_.write(",");
  first_event_ = false;
  last_ns_ = at_ns - base_ns_;
  out_.write("\n{\"type\":\"" + std::string(1, type) + R"(","frame":)" + std::to_string(frame) +
             R"(,"at":)" + std::to_string(last_ns_) + '}');
}

void speedscope_sink::end_profile() {
  if (tid_ == 0) return;
  open_.finish([this](std::int64_t at_ns, std::uint32_t frame) { event('C', frame, at_ns); });
  out_.write(R"(],"startValue":0,"endValue":)" + std::to_string(last_ns_) + '}');
}

void speedscope_sink::slice(track where, std::uint32_t frame, std::int64_t start_ns,
                            std::int64_t duration_ns) {
  if (where.tid != tid_) {
    end_profile();
    tid_ = where.tid;
    last_ns_ = 0;
    out_.write(first_profile_ ? "\n" : ",\n");
    first_profile_ = false;
    first_event_ = true;
    out_.write(R"({"type":"evented","unit":"nanoseconds","name":)" + json_string(threads_[tid_]) +
               R"(,"events":[)");
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
  if (frame == UINT32_MAX) frame = frame_of(names_.name(name));
  slice(where, frame, start_ns, duration_ns);
}

void speedscope_sink::batch(const batch_event& event) {
  if (event.instant) return;
  slice(event.where, frame_of(event.family), event.start_ns, event.duration_ns);
}

void speedscope_sink::counter(std::uint32_t /*pid*/, std::string_view /*name*/,
                              std::int64_t /*at_ns*/, std::int64_t /*value*/) {}

void speedscope_sink::finish() {
  end_profile();
  out_.write("\n],\"shared\":{\"frames\":[");
  bool first = true;
  for (const std::string& frame : frames_) {
    out_.write(first ? "\n{\"name\":" : ",\n{\"name\":");
    first = false;
    out_.write(json_string(frame) + '}');
  }
  out_.write("\n]}}\n");
}

}  // namespace lotus::tool
