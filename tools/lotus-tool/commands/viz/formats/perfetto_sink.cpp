// Writes Perfetto's native format: protobuf packets with track events. Its files are smaller and
// load faster than JSON.
#include <cstdint>
#include <map>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/files/output_file.hpp"
#include "commands/viz/formats/trace_sink.hpp"
#include "commands/viz/formats/viz_formats.hpp"
#include "commands/viz/nesting_lanes.hpp"
#include "log/operation_names.hpp"
#include "log/shown_name.hpp"

namespace lotus::tool {
namespace {

/// Writes one packet sequence. Names of operations are interned (written once and then referred to
/// by number); other names are not, because they are few and short in comparison. Times are
/// absolute ns. Field numbers are from Perfetto's protos/perfetto/trace/*.proto.
class perfetto_sink final : public trace_sink {
 public:
  /// The sink does not own its arguments; both must outlive it. The caller commits `out`.
  perfetto_sink(output_file& out, const name_table& names) : out_(out), names_(names) {}

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
  void packet(const std::string& content);
  void change_track(track where);
  void end_slice(std::int64_t at_ns);
  static std::string event_packet(std::int64_t at_ns, const std::string& track_event,
                                  const std::string& interned_data = {});

  output_file& out_;
  const name_table& names_;
  std::uint64_t track_uuid_ = 0;  // uuid of the track of the current slices
  slice_stack<char> open_;
  std::vector<bool> interned_;  // whether each name was already interned
  void named_track(std::uint64_t uuid, std::uint64_t parent, std::string_view name,
                   std::uint32_t order);
  void async_begin(std::uint64_t track_uuid, std::string_view name, std::int64_t at_ns);
  void async_end(std::uint64_t track_uuid, std::int64_t at_ns);

  std::map<std::pair<std::uint32_t, std::string>, std::uint64_t> counters_;
  // Uuids of tracks by process, name and lane.
  std::map<std::tuple<std::uint32_t, std::string, std::uint32_t>, std::uint64_t> async_tracks_;
};

using protozero::pbf_writer;

// Field numbers of TracePacket.
constexpr protozero::pbf_tag_type packet_timestamp = 8;
constexpr protozero::pbf_tag_type packet_sequence_id = 10;
constexpr protozero::pbf_tag_type packet_track_event = 11;
constexpr protozero::pbf_tag_type packet_interned_data = 12;
constexpr protozero::pbf_tag_type packet_sequence_flags = 13;
constexpr protozero::pbf_tag_type packet_track_descriptor = 60;
constexpr std::uint32_t state_cleared = 1;
constexpr std::uint32_t needs_state = 2;
// Field numbers of TrackDescriptor.
constexpr protozero::pbf_tag_type descriptor_uuid = 1;
constexpr protozero::pbf_tag_type descriptor_name = 2;
constexpr protozero::pbf_tag_type descriptor_parent_uuid = 5;
constexpr protozero::pbf_tag_type descriptor_child_ordering = 11;
constexpr protozero::pbf_tag_type descriptor_order_rank = 12;
constexpr std::uint32_t after_threads = INT32_MAX;
// Field numbers of TrackEvent.
constexpr protozero::pbf_tag_type event_category_iids = 3;
constexpr protozero::pbf_tag_type event_debug_annotations = 4;
constexpr protozero::pbf_tag_type event_type = 9;
constexpr protozero::pbf_tag_type event_name_iid = 10;
constexpr protozero::pbf_tag_type event_track_uuid = 11;
constexpr protozero::pbf_tag_type event_name = 23;
constexpr protozero::pbf_tag_type event_counter_value = 30;
constexpr protozero::pbf_tag_type event_flow_ids = 47;
constexpr protozero::pbf_tag_type event_terminating_flow_ids = 48;
constexpr std::int32_t slice_begin = 1;
constexpr std::int32_t slice_end = 2;
constexpr std::int32_t instant = 3;
constexpr std::int32_t counter_event = 4;
// Field numbers of InternedData.
constexpr protozero::pbf_tag_type interned_categories = 1;
constexpr protozero::pbf_tag_type interned_names = 2;
/// Returns the id by which packets refer to a category: its position in trace_sink::categories,
/// from 1 on. The names that belong to these ids are written once, at the beginning.
constexpr std::uint64_t category_iid(std::string_view category) {
  std::uint64_t iid = 1;
  for (const std::string_view known : trace_sink::categories) {
    if (known == category) break;
    ++iid;
  }
  return iid;
}

constexpr std::uint32_t the_sequence = 1;

// Uuids of tracks: the upper 32 bits are the kind of the track, the lower 32 bits a number within
// the kind, which begins at 1.
constexpr std::uint64_t process_uuid(std::uint32_t pid) {
  return (std::uint64_t{1} << 32U) | pid;
}
constexpr std::uint64_t thread_uuid(std::uint32_t tid) {
  return (std::uint64_t{2} << 32U) | tid;
}
constexpr std::uint64_t counter_uuid(std::uint64_t n) {
  return (std::uint64_t{3} << 32U) | n;
}
constexpr std::uint64_t async_uuid(std::uint64_t n) {
  return (std::uint64_t{4} << 32U) | n;
}

std::string interned(std::uint64_t iid, std::string_view text) {
  std::string entry;
  pbf_writer writer(entry);
  writer.add_uint64(1, iid);
  writer.add_string(2, text.data(), text.size());
  return entry;
}

std::string annotation(std::string_view name, std::uint64_t value) {
  std::string text;
  pbf_writer writer(text);
  writer.add_string(10, name.data(), name.size());
  writer.add_uint64(3, value);
  return text;
}

std::string annotation(std::string_view name, std::string_view value) {
  std::string text;
  pbf_writer writer(text);
  writer.add_string(10, name.data(), name.size());
  writer.add_string(6, value.data(), value.size());
  return text;
}

/// Sets the position of a track among its siblings, and that its own children have positions too.
void order_track(pbf_writer& descriptor, std::uint32_t order) {
  constexpr std::int32_t explicit_order = 3;
  descriptor.add_enum(descriptor_child_ordering, explicit_order);
  descriptor.add_int32(descriptor_order_rank, static_cast<std::int32_t>(order));
}

std::string descriptor_packet(const std::string& descriptor) {
  std::string content;
  pbf_writer packet(content);
  packet.add_message(packet_track_descriptor, descriptor);
  packet.add_uint32(packet_sequence_id, the_sequence);
  return content;
}

void perfetto_sink::packet(const std::string& content) {
  std::string framed;
  pbf_writer trace(framed);
  trace.add_message(1, content);
  out_.write(framed);
}

void perfetto_sink::begin(std::int64_t /*base_ns*/) {
  std::string data;
  pbf_writer interned_data(data);
  for (const std::string_view category : categories) {
    interned_data.add_message(interned_categories, interned(category_iid(category), category));
  }
  std::string content;
  pbf_writer first(content);
  first.add_uint32(packet_sequence_id, the_sequence);
  first.add_uint32(packet_sequence_flags, state_cleared);
  first.add_message(packet_interned_data, data);
  packet(content);
}

void perfetto_sink::process(std::uint32_t pid, std::string_view name, std::uint32_t order) {
  std::string process_text;
  pbf_writer process_writer(process_text);
  process_writer.add_int32(1, static_cast<std::int32_t>(pid));
  process_writer.add_string(6, name.data(), name.size());
  std::string descriptor;
  pbf_writer writer(descriptor);
  writer.add_uint64(descriptor_uuid, process_uuid(pid));
  writer.add_message(3, process_text);
  order_track(writer, order);
  packet(descriptor_packet(descriptor));
}

void perfetto_sink::thread(track where, std::string_view name, std::uint32_t order) {
  std::string thread_text;
  pbf_writer thread_writer(thread_text);
  thread_writer.add_int32(1, static_cast<std::int32_t>(where.pid));
  thread_writer.add_int64(2, where.tid);
  thread_writer.add_string(5, name.data(), name.size());
  std::string descriptor;
  pbf_writer writer(descriptor);
  writer.add_uint64(descriptor_uuid, thread_uuid(where.tid));
  writer.add_uint64(descriptor_parent_uuid, process_uuid(where.pid));
  writer.add_message(4, thread_text);
  order_track(writer, order);
  packet(descriptor_packet(descriptor));
}

void perfetto_sink::named_track(std::uint64_t uuid, std::uint64_t parent, std::string_view name,
                                std::uint32_t order) {
  std::string descriptor;
  pbf_writer writer(descriptor);
  writer.add_uint64(descriptor_uuid, uuid);
  writer.add_string(descriptor_name, name.data(), name.size());
  writer.add_uint64(descriptor_parent_uuid, parent);
  order_track(writer, order);
  packet(descriptor_packet(descriptor));
}

void perfetto_sink::thread_below(track where, track of, std::string_view name,
                                 std::uint32_t order) {
  named_track(thread_uuid(where.tid), thread_uuid(of.tid), name, order);
}

void perfetto_sink::process_track(track where, std::string_view name, std::uint32_t order) {
  named_track(thread_uuid(where.tid), process_uuid(where.pid), name, order);
}

std::string perfetto_sink::event_packet(std::int64_t at_ns, const std::string& track_event,
                                        const std::string& interned_data) {
  std::string content;
  pbf_writer writer(content);
  writer.add_uint64(packet_timestamp, static_cast<std::uint64_t>(at_ns));
  writer.add_uint32(packet_sequence_id, the_sequence);
  writer.add_uint32(packet_sequence_flags, needs_state);
  if (!interned_data.empty()) writer.add_message(packet_interned_data, interned_data);
  writer.add_message(packet_track_event, track_event);
  return content;
}

void perfetto_sink::end_slice(std::int64_t at_ns) {
  std::string event;
  pbf_writer writer(event);
  writer.add_int32(event_type, slice_end);
  writer.add_uint64(event_track_uuid, track_uuid_);
  packet(event_packet(at_ns, event));
}

void perfetto_sink::change_track(track where) {
  const std::uint64_t uuid = thread_uuid(where.tid);
  if (uuid == track_uuid_) return;
  open_.finish([this](std::int64_t at_ns, char) { end_slice(at_ns); });
  track_uuid_ = uuid;
}

void perfetto_sink::operation(track where, std::uint32_t name, std::int64_t start_ns,
                              std::int64_t duration_ns) {
  change_track(where);
  const std::int64_t at_ns =
      open_.open(start_ns, duration_ns, 0, [this](std::int64_t ns, char) { end_slice(ns); });
  if (name >= interned_.size()) interned_.resize(names_.size());
  std::string data;
  if (!interned_[name]) {
    interned_[name] = true;
    pbf_writer(data).add_message(interned_names,
                                 interned(name + 1U, shown_name(names_.name(name))));
  }
  std::string event;
  pbf_writer writer(event);
  writer.add_int32(event_type, slice_begin);
  writer.add_uint64(event_track_uuid, track_uuid_);
  writer.add_uint64(event_category_iids, category_iid("op"));
  writer.add_uint64(event_name_iid, name + 1U);
  packet(event_packet(at_ns, event, data));
}

void perfetto_sink::slice(const slice_event& event) {
  change_track(event.where);
  std::int64_t at_ns = event.start_ns;
  const auto close = [this](std::int64_t ns, char) { end_slice(ns); };
  if (event.instant) {
    open_.close_until(at_ns, close);
  } else {
    at_ns = open_.open(event.start_ns, event.duration_ns, 0, close);
  }
  std::string text;
  pbf_writer writer(text);
  writer.add_int32(event_type, event.instant ? instant : slice_begin);
  writer.add_uint64(event_track_uuid, track_uuid_);
  writer.add_uint64(event_category_iids, category_iid(event.category));
  writer.add_string(event_name, event.name.data(), event.name.size());
  for (const event_argument& a : event.arguments) {
    writer.add_message(event_debug_annotations, annotation(a.name, a.value));
  }
  for (const event_text& t : event.texts) {
    writer.add_message(event_debug_annotations, annotation(t.name, t.text));
  }
  for (const flow_point& point : event.flows) {
    if (point.end == flow_end::leaves) writer.add_fixed64(event_flow_ids, point.id);
    if (point.end == flow_end::arrives) writer.add_fixed64(event_terminating_flow_ids, point.id);
  }
  packet(event_packet(at_ns, text));
}

void perfetto_sink::async_begin(std::uint64_t track_uuid, std::string_view name,
                                std::int64_t at_ns) {
  std::string text;
  pbf_writer writer(text);
  writer.add_int32(event_type, slice_begin);
  writer.add_uint64(event_track_uuid, track_uuid);
  writer.add_uint64(event_category_iids, category_iid("async"));
  writer.add_string(event_name, name.data(), name.size());
  packet(event_packet(at_ns, text));
}

void perfetto_sink::async_end(std::uint64_t track_uuid, std::int64_t at_ns) {
  std::string text;
  pbf_writer writer(text);
  writer.add_int32(event_type, slice_end);
  writer.add_uint64(event_track_uuid, track_uuid);
  packet(event_packet(at_ns, text));
}

void perfetto_sink::async(const async_event& event) {
  const auto [entry, is_new] = async_tracks_.try_emplace(
      {event.pid, std::string(event.name), event.lane}, async_uuid(async_tracks_.size()));
  const std::uint64_t uuid = entry->second;
  // Each lane is a track of its own; the UI groups the tracks because they have the same name.
  if (is_new) named_track(uuid, process_uuid(event.pid), event.name, after_threads);
  async_begin(uuid, event.name, event.extent.start_ns);
  for (const time_span& segment : event.running) {
    async_begin(uuid, "running", segment.start_ns);
    async_end(uuid, segment.end_ns);
  }
  async_end(uuid, event.extent.end_ns);
}

void perfetto_sink::counter(std::uint32_t pid, std::string_view name, std::int64_t at_ns,
                            std::int64_t value) {
  const auto [entry, is_new] =
      counters_.try_emplace({pid, std::string(name)}, counter_uuid(counters_.size()));
  if (is_new) {
    std::string descriptor;
    pbf_writer writer(descriptor);
    writer.add_uint64(descriptor_uuid, entry->second);
    writer.add_uint64(descriptor_parent_uuid, process_uuid(pid));
    writer.add_string(descriptor_name, name.data(), name.size());
    order_track(writer, after_threads);
    writer.add_message(8, std::string());
    packet(descriptor_packet(descriptor));
  }
  std::string event;
  pbf_writer writer(event);
  writer.add_int32(event_type, counter_event);
  writer.add_uint64(event_track_uuid, entry->second);
  writer.add_int64(event_counter_value, value);
  packet(event_packet(at_ns, event));
}

void perfetto_sink::finish() {
  open_.finish([this](std::int64_t at_ns, char) { end_slice(at_ns); });
}

}  // namespace

std::unique_ptr<trace_sink> make_perfetto(output_file& file, const name_table& names,
                                          const torch_trace* /*torch*/) {
  return std::make_unique<perfetto_sink>(file, names);
}

}  // namespace lotus::tool
