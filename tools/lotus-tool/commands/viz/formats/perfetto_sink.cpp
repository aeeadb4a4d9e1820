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

/// Returns the message that `fill` writes.
template <class Fill>
std::string message(const Fill& fill) {
  std::string text;
  pbf_writer to(text);
  fill(to);
  return text;
}

std::string interned(std::uint64_t iid, std::string_view text) {
  return message([&](pbf_writer& to) {
    to.add_uint64(1, iid);
    to.add_string(2, text.data(), text.size());
  });
}

/// Returns an annotation of an event, whose value `add` writes.
template <class Add>
std::string annotation(std::string_view name, const Add& add) {
  return message([&](pbf_writer& to) {
    to.add_string(10, name.data(), name.size());
    add(to);
  });
}

/// Writes one packet sequence. Names of operations are interned (written once and then referred to
/// by number); other names are not, because they are few and short in comparison. Times are
/// absolute ns. Field numbers are from Perfetto's protos/perfetto/trace/*.proto.
class perfetto_sink final : public trace_sink {
 public:
  /// The sink does not own its arguments; both must outlive it. The caller commits `out`.
  perfetto_sink(output_file& out, const name_table& names) : out_(out), names_(names) {}

  void begin(std::int64_t /*base_ns*/) override {
    packet(message([](pbf_writer& first) {
      first.add_uint32(packet_sequence_id, the_sequence);
      first.add_uint32(packet_sequence_flags, state_cleared);
      pbf_writer data(first, packet_interned_data);
      for (const std::string_view category : categories) {
        data.add_message(interned_categories, interned(category_iid(category), category));
      }
    }));
  }

  void process(std::uint32_t pid, std::string_view name, std::uint32_t order) override {
    describe_track(process_uuid(pid), order, [&](pbf_writer& to) {
      pbf_writer of_process(to, 3);
      of_process.add_int32(1, static_cast<std::int32_t>(pid));
      of_process.add_string(6, name.data(), name.size());
    });
  }

  void thread(track where, std::string_view name, std::uint32_t order) override {
    describe_track(thread_uuid(where.tid), order, [&](pbf_writer& to) {
      to.add_uint64(descriptor_parent_uuid, process_uuid(where.pid));
      pbf_writer of_thread(to, 4);
      of_thread.add_int32(1, static_cast<std::int32_t>(where.pid));
      of_thread.add_int64(2, where.tid);
      of_thread.add_string(5, name.data(), name.size());
    });
  }

  void thread_below(track where, track of, std::string_view name, std::uint32_t order) override {
    named_track(thread_uuid(where.tid), thread_uuid(of.tid), name, order);
  }

  void process_track(track where, std::string_view name, std::uint32_t order) override {
    named_track(thread_uuid(where.tid), process_uuid(where.pid), name, order);
  }

  void operation(track where, std::uint32_t name, std::int64_t start_ns,
                 std::int64_t duration_ns) override {
    change_track(where);
    const std::int64_t at_ns =
        open_.open(start_ns, duration_ns, [this](std::int64_t ns) { end_slice(ns, track_uuid_); });
    if (name >= interned_.size()) interned_.resize(names_.size());
    std::string data;
    if (!interned_[name]) {
      interned_[name] = true;
      pbf_writer(data).add_message(interned_names,
                                   interned(name + 1U, shown_name(names_.name(name))));
    }
    const auto fill = [name](pbf_writer& to) {
      to.add_uint64(event_category_iids, category_iid("op"));
      to.add_uint64(event_name_iid, name + 1U);
    };
    event(at_ns, slice_begin, track_uuid_, fill, data);
  }

  void slice(const slice_event& of) override {
    change_track(of.where);
    std::int64_t at_ns = of.start_ns;
    const auto close = [this](std::int64_t ns) { end_slice(ns, track_uuid_); };
    if (of.instant) {
      open_.close_until(at_ns, close);
    } else {
      at_ns = open_.open(of.start_ns, of.duration_ns, close);
    }
    event(at_ns, of.instant ? instant : slice_begin, track_uuid_, [&](pbf_writer& to) {
      to.add_uint64(event_category_iids, category_iid(of.category));
      to.add_string(event_name, of.name.data(), of.name.size());
      for (const event_argument& a : of.arguments) {
        to.add_message(event_debug_annotations, annotation(a.name, [&a](pbf_writer& value) {
                         value.add_uint64(3, a.value);
                       }));
      }
      for (const event_text& t : of.texts) {
        to.add_message(event_debug_annotations, annotation(t.name, [&t](pbf_writer& value) {
                         value.add_string(6, t.text.data(), t.text.size());
                       }));
      }
      for (const flow_point& point : of.flows) {
        if (point.end == flow_end::leaves) to.add_fixed64(event_flow_ids, point.id);
        if (point.end == flow_end::arrives) to.add_fixed64(event_terminating_flow_ids, point.id);
      }
    });
  }

  void async(const async_event& of) override {
    const auto [entry, is_new] = async_tracks_.try_emplace({of.pid, std::string(of.name), of.lane},
                                                           async_uuid(async_tracks_.size()));
    const std::uint64_t uuid = entry->second;
    // Each lane is a track of its own; the UI groups the tracks because they have the same name.
    if (is_new) named_track(uuid, process_uuid(of.pid), of.name, after_threads);
    begin_slice(of.extent.start_ns, uuid, of.name);
    for (const time_span& segment : of.running) {
      begin_slice(segment.start_ns, uuid, "running");
      end_slice(segment.end_ns, uuid);
    }
    end_slice(of.extent.end_ns, uuid);
  }

  void counter(std::uint32_t pid, std::string_view name, std::int64_t at_ns,
               std::int64_t value) override {
    const auto [entry, is_new] =
        counters_.try_emplace({pid, std::string(name)}, counter_uuid(counters_.size()));
    if (is_new) {
      describe_track(entry->second, after_threads, [&](pbf_writer& to) {
        to.add_uint64(descriptor_parent_uuid, process_uuid(pid));
        to.add_string(descriptor_name, name.data(), name.size());
        to.add_message(8, std::string());
      });
    }
    event(at_ns, counter_event, entry->second,
          [value](pbf_writer& to) { to.add_int64(event_counter_value, value); });
  }

  void finish() override {
    open_.finish([this](std::int64_t at_ns) { end_slice(at_ns, track_uuid_); });
  }

 private:
  void packet(const std::string& content) {
    out_.write(message([&](pbf_writer& trace) { trace.add_message(1, content); }));
  }

  /// Writes the descriptor of a track.
  /// @param order  the position of the track among its siblings; its own children have positions
  /// too.
  /// @param fill   writes what only this kind of track has.
  template <class Fill>
  void describe_track(std::uint64_t uuid, std::uint32_t order, const Fill& fill) {
    constexpr std::int32_t explicit_order = 3;
    const std::string descriptor = message([&](pbf_writer& to) {
      to.add_uint64(descriptor_uuid, uuid);
      fill(to);
      to.add_enum(descriptor_child_ordering, explicit_order);
      to.add_int32(descriptor_order_rank, static_cast<std::int32_t>(order));
    });
    packet(message([&](pbf_writer& to) {
      to.add_message(packet_track_descriptor, descriptor);
      to.add_uint32(packet_sequence_id, the_sequence);
    }));
  }

  void named_track(std::uint64_t uuid, std::uint64_t parent, std::string_view name,
                   std::uint32_t order) {
    describe_track(uuid, order, [&](pbf_writer& to) {
      to.add_string(descriptor_name, name.data(), name.size());
      to.add_uint64(descriptor_parent_uuid, parent);
    });
  }

  /// Writes an event of a track.
  /// @param fill           writes what only this kind of event has.
  /// @param interned_data  the names to which this event is the first to refer.
  template <class Fill>
  void event(std::int64_t at_ns, std::int32_t type, std::uint64_t track_uuid, const Fill& fill,
             const std::string& interned_data = {}) {
    packet(message([&](pbf_writer& to) {
      to.add_uint64(packet_timestamp, static_cast<std::uint64_t>(at_ns));
      to.add_uint32(packet_sequence_id, the_sequence);
      to.add_uint32(packet_sequence_flags, needs_state);
      if (!interned_data.empty()) to.add_message(packet_interned_data, interned_data);
      pbf_writer track_event(to, packet_track_event);
      track_event.add_int32(event_type, type);
      track_event.add_uint64(event_track_uuid, track_uuid);
      fill(track_event);
    }));
  }

  void begin_slice(std::int64_t at_ns, std::uint64_t track_uuid, std::string_view name) {
    event(at_ns, slice_begin, track_uuid, [&](pbf_writer& to) {
      to.add_uint64(event_category_iids, category_iid("async"));
      to.add_string(event_name, name.data(), name.size());
    });
  }

  void end_slice(std::int64_t at_ns, std::uint64_t track_uuid) {
    event(at_ns, slice_end, track_uuid, [](pbf_writer&) {});
  }

  void change_track(track where) {
    const std::uint64_t uuid = thread_uuid(where.tid);
    if (uuid == track_uuid_) return;
    open_.finish([this](std::int64_t at_ns) { end_slice(at_ns, track_uuid_); });
    track_uuid_ = uuid;
  }

  output_file& out_;
  const name_table& names_;
  std::uint64_t track_uuid_ = 0;  // uuid of the track of the current slices
  slice_stack open_;
  std::vector<bool> interned_;  // whether each name was already interned

  std::map<std::pair<std::uint32_t, std::string>, std::uint64_t> counters_;
  // Uuids of tracks by process, name and lane.
  std::map<std::tuple<std::uint32_t, std::string, std::uint32_t>, std::uint64_t> async_tracks_;
};

}  // namespace

std::unique_ptr<trace_sink> make_perfetto(output_file& file, const name_table& names,
                                          const torch_trace* /*torch*/) {
  return std::make_unique<perfetto_sink>(file, names);
}

}  // namespace lotus::tool
