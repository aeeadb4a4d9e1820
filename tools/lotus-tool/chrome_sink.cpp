#include "chrome_sink.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "names.hpp"
#include "output_file.hpp"
#include "text.hpp"
#include "torch_trace.hpp"
#include "trace_sink.hpp"

namespace lotus::tool {

void chrome_sink::begin(std::int64_t base_ns) {
  const std::string key =
      '"' + std::string(own_trace_key) + R"(":)" + json_string(LOTUS_TOOL_VERSION);
  if (torch_ != nullptr) {
    base_ns_ = torch_->base_ns;
    torch_->copy_head(out_, key);
    first_ = !torch_->has_events;
    return;
  }
  base_ns_ = base_ns;
  out_.write('{' + key + R"(,"displayTimeUnit":"ms","baseTimeNanoseconds":)" +
             std::to_string(base_ns) + R"(,"traceEvents":[)");
}

void chrome_sink::finish() {
  if (torch_ != nullptr) {
    torch_->copy_rest(out_);
  } else {
    out_.write("\n]}\n");
  }
}

void chrome_sink::emit() {
  event_ += '}';
  out_.write(first_ ? "\n" : ",\n");
  first_ = false;
  out_.write(event_);
}

void chrome_sink::append_place(track where) {
  event_ += R"(,"pid":)";
  event_ += std::to_string(where.pid);
  event_ += R"(,"tid":)";
  event_ += std::to_string(where.tid);
}

void chrome_sink::append_time(std::string_view key, std::int64_t ns) {
  std::array<char, 24> digits{};
  event_ += key;
  event_.append(digits.data(), put_us(digits.data(), ns));
}

void chrome_sink::metadata(std::string_view what, track where, bool of_thread,
                           std::string_view args) {
  event_ = R"({"ph":"M","name":")";
  event_ += what;
  event_ += R"(","pid":)";
  event_ += std::to_string(where.pid);
  if (of_thread) event_ += R"(,"tid":)" + std::to_string(where.tid);
  event_ += R"(,"args":{)";
  event_ += args;
  event_ += '}';
  emit();
}

void chrome_sink::process(std::uint32_t pid, std::string_view name, std::uint32_t order) {
  metadata("process_name", {pid, 0}, false, R"("name":)" + json_string(name));
  metadata("process_sort_index", {pid, 0}, false, R"("sort_index":)" + std::to_string(order));
}

void chrome_sink::thread(track where, std::string_view name, std::uint32_t order) {
  metadata("thread_name", where, true, R"("name":)" + json_string(name));
  metadata("thread_sort_index", where, true, R"("sort_index":)" + std::to_string(order));
}

const std::string& chrome_sink::head_of(track where, std::uint32_t name) {
  if (where.pid != heads_of_.pid || where.tid != heads_of_.tid) {
    heads_.clear();
    heads_of_ = where;
  }
  if (name >= heads_.size()) heads_.resize(names_.size());
  std::string& head = heads_[name];
  if (head.empty()) {
    event_ = ",\n{\"ph\":\"X\",\"cat\":\"op\",\"name\":" + json_string(names_.name(name));
    append_place(where);
    event_ += R"(,"ts":)";
    head = event_;
  }
  return head;
}

void chrome_sink::operation(track where, std::uint32_t name, std::int64_t start_ns,
                            std::int64_t duration_ns) {
  std::string_view head = head_of(where, name);
  if (first_) {
    head.remove_prefix(1);
    first_ = false;
  }
  if (head.size() > output_file::room_bytes / 2) {
    out_.write(head);
    head = {};
  }
  char* p = put(out_.room(output_file::room_bytes), head);
  p = put_us(p, start_ns - base_ns_);
  p = put(p, R"(,"dur":)");
  p = put_us(p, duration_ns);
  *p++ = '}';
  out_.advance_to(p);
}

void chrome_sink::batch(const batch_event& event) {
  event_ = event.instant ? R"({"ph":"i","s":"t","cat":"batch","name":)"
                         : R"({"ph":"X","cat":"batch","name":)";
  append_json_string(event_, event.name);
  append_place(event.where);
  append_time(R"(,"ts":)", event.start_ns - base_ns_);
  if (!event.instant) append_time(R"(,"dur":)", event.duration_ns);
  event_ += R"(,"args":{"batch":)";
  event_ += std::to_string(event.index);
  event_ += R"(,"epoch":)";
  event_ += std::to_string(event.epoch);
  event_ += '}';
  emit();
  if (event.flow != flow_end::none) flow(event);
}

void chrome_sink::counter(std::uint32_t pid, std::string_view name, std::int64_t at_ns,
                          std::int64_t value) {
  event_ = R"({"ph":"C","name":)";
  append_json_string(event_, name);
  event_ += R"(,"pid":)";
  event_ += std::to_string(pid);
  append_time(R"(,"ts":)", at_ns - base_ns_);
  event_ += R"(,"args":{"value":)";
  event_ += std::to_string(value);
  event_ += '}';
  emit();
}

void chrome_sink::flow(const batch_event& event) {
  const bool leaves = event.flow == flow_end::leaves;
  // An arrow end belongs to the slice that is open at its time, and at its end a slice is open
  // no longer: so an arrow leaves in the slice's last nanosecond.
  const std::int64_t last_ns =
      event.duration_ns > 0 ? event.start_ns + event.duration_ns - 1 : event.start_ns;
  event_ = leaves ? R"({"ph":"s")" : R"({"ph":"f","bp":"e")";
  event_ += R"(,"cat":"batch","name":"batch","id":)";
  event_ += std::to_string(event.flow_id);
  append_place(event.where);
  append_time(R"(,"ts":)", (leaves ? last_ns : event.start_ns) - base_ns_);
  emit();
}

}  // namespace lotus::tool
