#include <string>
#include <string_view>
#include <vector>

#include "base/formats/json_writer.hpp"
#include "findings/screen/first_screen.hpp"

namespace lotus::tool {

void write_target(json_writer& json, const shown_target& target) {
  const auto write = [&](std::string_view kind, bool at_a_time) {
    json.begin_object().member("kind", kind);
    if (!target.name.empty()) json.member("name", target.name);
    if (at_a_time) {
      json.member("at_ns", target.at_ns).member("ns", target.ns);
      if (target.file) json.member("track", target.file->value());
    }
    json.end_object();
  };
  switch (target.what) {
    case shown_target::kind::none:
      json.value(nullptr);
      break;
    case shown_target::kind::operation:
      write("operation", false);
      break;
    case shown_target::kind::stage:
      write("stage", false);
      break;
    case shown_target::kind::batches:
      write("batches", false);
      break;
    case shown_target::kind::range:
      write("range", true);
      break;
    case shown_target::kind::call:
      write("call", true);
      break;
  }
}

void write_first_screen(json_writer& json, const first_screen& screen) {
  const auto write_list = [&json](std::string_view key, const std::vector<std::string>& texts) {
    json.key(key).begin_array();
    for (const std::string& text : texts) json.value(text);
    json.end_array();
  };
  json.begin_object().member("title", screen.title).member("headline", screen.headline);
  json.member("why", screen.why);
  write_list("warnings", screen.warnings);
  json.key("advice").begin_array();
  for (const shown_advice& a : screen.advice) {
    json.begin_object().member("change", a.change).member("now", a.now).member("then", a.then);
    json.member("low", a.low).member("high", a.high).key("target");
    write_target(json, a.target);
    json.end_object();
  }
  json.end_array().member("assumption", screen.assumption);
  write_list("not_worth", screen.not_worth);
  json.key("where").begin_array();
  for (const shown_share& row : screen.where) {
    json.begin_object().member("name", row.name).member("share", row.share);
    if (row.running) {
      json.member("running", *row.running).member("no_cpu", *row.no_cpu);
      json.member("blocked", *row.blocked);
    }
    json.end_object();
  }
  json.end_array().member("slowest", screen.slowest).key("slowest_target");
  write_target(json, screen.slowest_target);
  json.end_object();
}

}  // namespace lotus::tool
