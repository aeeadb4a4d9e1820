#include "threads/analysis/pprof.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "base/printable.hpp"
#include "threads/analysis/named_stacks.hpp"
#include "threads/analysis/sample_times.hpp"
#include "threads/analysis/thread_activity.hpp"
#include "threads/data/thread_samples.hpp"

namespace lotus::tool {
namespace {

using protozero::pbf_tag_type;
using protozero::pbf_writer;

// Field numbers of the message Profile in pprof's profile.proto.
constexpr pbf_tag_type profile_sample_type = 1;
constexpr pbf_tag_type profile_sample = 2;
constexpr pbf_tag_type profile_mapping = 3;
constexpr pbf_tag_type profile_location = 4;
constexpr pbf_tag_type profile_function = 5;
constexpr pbf_tag_type profile_string_table = 6;
constexpr pbf_tag_type profile_time_nanos = 9;
constexpr pbf_tag_type profile_duration_nanos = 10;
constexpr pbf_tag_type profile_period_type = 11;
constexpr pbf_tag_type profile_period = 12;
constexpr pbf_tag_type profile_default_sample_type = 14;
// Field numbers of the messages ValueType, Sample, Label, Mapping, Location, Line and Function.
constexpr pbf_tag_type type_name = 1;
constexpr pbf_tag_type type_unit = 2;
constexpr pbf_tag_type sample_location_ids = 1;
constexpr pbf_tag_type sample_values = 2;
constexpr pbf_tag_type sample_label = 3;
constexpr pbf_tag_type label_key = 1;
constexpr pbf_tag_type label_text = 2;
constexpr pbf_tag_type mapping_id = 1;
constexpr pbf_tag_type mapping_filename = 5;
constexpr pbf_tag_type mapping_has_functions = 7;
constexpr pbf_tag_type mapping_has_filenames = 8;
constexpr pbf_tag_type mapping_has_line_numbers = 9;
constexpr pbf_tag_type mapping_has_inline_frames = 10;
constexpr pbf_tag_type location_id = 1;
constexpr pbf_tag_type location_mapping_id = 2;
constexpr pbf_tag_type location_line = 4;
constexpr pbf_tag_type line_function_id = 1;
constexpr pbf_tag_type line_line = 2;
constexpr pbf_tag_type function_id = 1;
constexpr pbf_tag_type function_name = 2;
constexpr pbf_tag_type function_system_name = 3;
constexpr pbf_tag_type function_filename = 4;

/// Assigns numbers to values, from `first` on, and calls a function for each new value.
template <class Value>
class ids {
 public:
  explicit ids(std::uint64_t first) : next_(first) {}
  template <class OnNew>
  std::uint64_t of(const Value& value, OnNew&& on_new) {
    const auto [at, is_new] = known_.try_emplace(value, next_);
    if (!is_new) return at->second;
    const std::uint64_t id = next_++;
    on_new(id);
    return id;
  }

 private:
  std::map<Value, std::uint64_t> known_;
  std::uint64_t next_;
};

class profile {
 public:
  profile() { text(""); }  // pprof requires that the string with the number 0 is empty

  /// Returns the number of a string in the profile's table. Adds the string if it is new.
  std::uint64_t text(const std::string& what) {
    return strings_.of(what, [&](std::uint64_t) {
      pbf_writer(strings_text_).add_string(profile_string_table, printable_line(what));
    });
  }

  /// Returns the number of the location of a call. Adds the location if it is new.
  std::uint64_t location(const source_place& place) {
    return locations_.of(place, [&](std::uint64_t id) {
      const std::uint64_t module = mapping(place.module);
      const std::uint64_t of = function(place);
      pbf_writer out(places_);
      pbf_writer one(out, profile_location);
      one.add_uint64(location_id, id);
      one.add_uint64(location_mapping_id, module);
      pbf_writer line(one, location_line);
      line.add_uint64(line_function_id, of);
      line.add_int64(line_line, place.line);
    });
  }

  void type(pbf_tag_type field, const char* name, const char* unit) {
    const std::uint64_t name_number = text(name);
    const std::uint64_t unit_number = text(unit);
    pbf_writer out(head_);
    pbf_writer one(out, field);
    one.add_uint64(type_name, name_number);
    one.add_uint64(type_unit, unit_number);
  }
  void number(pbf_tag_type field, std::int64_t value) { pbf_writer(head_).add_int64(field, value); }

  void sample(const named_stack& stack, const std::array<std::int64_t, 3>& values,
              const std::vector<std::pair<const char*, std::string>>& labels) {
    std::vector<std::uint64_t> calls;
    for (const source_place& call : stack) calls.push_back(location(call));
    if (calls.empty()) calls.push_back(location({"[unknown]", "", "", 0, false}));
    std::vector<std::pair<std::uint64_t, std::uint64_t>> label_texts;
    label_texts.reserve(labels.size());
    for (const auto& [key, value] : labels) label_texts.emplace_back(text(key), text(value));
    pbf_writer out(samples_);
    pbf_writer one(out, profile_sample);
    one.add_packed_uint64(sample_location_ids, calls.begin(), calls.end());
    one.add_packed_int64(sample_values, values.begin(), values.end());
    for (const auto& [key, value] : label_texts) {
      pbf_writer label(one, sample_label);
      label.add_uint64(label_key, key);
      label.add_uint64(label_text, value);
    }
  }

  /// Returns the number of a module (a program or library) in the list of mappings. Adds the module
  /// if it is new. Readers of the profile assume that the first module is the program.
  std::uint64_t mapping(const std::string& module) {
    return mappings_.of(module, [&](std::uint64_t id) {
      const std::uint64_t path = text(module);
      pbf_writer out(places_);
      pbf_writer one(out, profile_mapping);
      one.add_uint64(mapping_id, id);
      one.add_uint64(mapping_filename, path);
      for (const pbf_tag_type known : {mapping_has_functions, mapping_has_filenames,
                                       mapping_has_line_numbers, mapping_has_inline_frames}) {
        one.add_bool(known, true);
      }
    });
  }

  std::string message() const { return head_ + samples_ + places_ + strings_text_; }

 private:
  std::uint64_t function(const source_place& place) {
    return functions_.of({place.function, place.module, place.file}, [&](std::uint64_t id) {
      const std::uint64_t name = text(place.function);
      const std::uint64_t file = text(place.file);
      pbf_writer out(places_);
      pbf_writer one(out, profile_function);
      one.add_uint64(function_id, id);
      one.add_uint64(function_name, name);
      one.add_uint64(function_system_name, name);
      one.add_uint64(function_filename, file);
    });
  }

  std::string head_;
  std::string samples_;
  std::string places_;
  std::string strings_text_;
  ids<std::string> strings_{0};
  ids<source_place> locations_{1};
  ids<std::string> mappings_{1};
  ids<std::tuple<std::string, std::string, std::string>> functions_{1};
};

}  // namespace

std::string pprof_of(const thread_samples& samples, const named_stacks& stacks,
                     const std::vector<thread_activity>& groups) {
  profile to;
  to.type(profile_sample_type, "samples", "count");
  to.type(profile_sample_type, "running", "nanoseconds");
  to.type(profile_sample_type, "waiting", "nanoseconds");
  const bool is_cpu_known = samples.interval_ns != 0;
  to.number(profile_default_sample_type,
            static_cast<std::int64_t>(to.text(is_cpu_known ? "running" : "waiting")));
  if (is_cpu_known) {
    to.type(profile_period_type, "cpu", "nanoseconds");
    to.number(profile_period, static_cast<std::int64_t>(samples.interval_ns));
  }
  std::uint64_t span_ns = 0;
  for (const sampled_thread& t : samples.threads) span_ns = std::max(span_ns, t.span_ns);
  to.number(profile_time_nanos, samples.time_ns - static_cast<std::int64_t>(span_ns));
  to.number(profile_duration_nanos, static_cast<std::int64_t>(span_ns));
  if (!groups.empty() && !groups.front().program.empty()) to.mapping(groups.front().program);
  for (const timed_sample& one : sample_times(samples, groups)) {
    const thread_sample& s = *one.of;
    const std::int64_t ns = std::llround(1e9 * one.time_s);
    std::vector<std::pair<const char*, std::string>> labels{
        {"group", unique_name(groups[one.group])}};
    if (s.waits) labels.emplace_back("reason", state_word(s));
    if (s.waits && !s.what.empty()) labels.emplace_back("what", s.what);
    to.sample(stacks.of(s.stack),
              {static_cast<std::int64_t>(s.count), s.waits ? 0 : ns, s.waits ? ns : 0}, labels);
  }
  return to.message();
}

}  // namespace lotus::tool
