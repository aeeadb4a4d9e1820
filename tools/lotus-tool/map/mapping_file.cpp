// mapping_funcs.json: writing and reading.
#include <rapidjson/document.h>
#include <rapidjson/error/en.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "errors.hpp"
#include "map/mapping.hpp"
#include "map/table_text.hpp"
#include "output_file.hpp"
#include "text.hpp"

namespace lotus::tool {
namespace {

/// {"a": …, "b": …} with each member on a line of its own.
template <class Map, class Value>
void write_object(output_file& to, const Map& members, Value&& value) {
  std::string_view before = "{";
  for (const auto& [name, member] : members) {
    to.write(std::string(before) + "\n    " + json_string(name) + ": ");
    to.write(value(member));
    before = ",";
  }
  to.write(members.empty() ? "{}" : "\n  }");
}

template <class Texts>
std::string text_list(const Texts& texts) {
  std::string list;
  for (const std::string& text : texts) {
    list += (list.empty() ? "" : ", ") + json_string(text);
  }
  return '[' + list + ']';
}

/// What was in inlined functions, where debug info told.
std::string inlined_member(const function_use& use) {
  if (use.inlined.empty()) return {};
  std::string text;
  for (const auto& [function, samples] : use.inlined) {
    text += (text.empty() ? "" : ", ") + json_string(function) + ": " + json_number(samples);
  }
  return ", \"inlined\": {" + text + '}';
}

std::string use_object(const operation_use& op) {
  std::string text;
  for (const std::string& function : by_share(op)) {
    const function_use& use = op.functions.at(function);
    text += (text.empty() ? "\n      " : ",\n      ") + json_string(function) +
            ": {\"hits\": " + std::to_string(use.hits) + ", \"runs\": " + std::to_string(op.runs) +
            ", \"samples\": " + json_number(use.samples) +
            ", \"share\": " + json_number(use.share) + inlined_member(use) + '}';
  }
  return '{' + text + '}';
}

using json = rapidjson::Value;

const json& object_member(const json& object, const char* key, const std::string& path) {
  const auto at = object.FindMember(key);
  if (at == object.MemberEnd() || !at->value.IsObject()) {
    throw input_error(path + ": not a mapping, it has no object '" + key + "'");
  }
  return at->value;
}

std::string text_of(const json& value, const std::string& path) {
  if (!value.IsString()) throw input_error(path + ": a function's name is not a text");
  return {value.GetString(), value.GetStringLength()};
}

double number_member(const json& object, const char* key) {
  const auto at = object.FindMember(key);
  return at != object.MemberEnd() && at->value.IsNumber() ? at->value.GetDouble() : 0;
}

void read_uses(const json& functions, operation_use& op) {
  for (const auto& f : functions.GetObject()) {
    const auto known = op.functions.find({f.name.GetString(), f.name.GetStringLength()});
    if (known == op.functions.end() || !f.value.IsObject()) continue;
    op.runs = std::max(op.runs, static_cast<std::uint64_t>(number_member(f.value, "runs")));
    known->second.hits = static_cast<std::uint64_t>(number_member(f.value, "hits"));
    known->second.samples = number_member(f.value, "samples");
    known->second.share = number_member(f.value, "share");
  }
}

}  // namespace

void write_mapping(const mapping& m, output_file& to) {
  to.write("{\n  \"op_to_func\": ");
  write_object(to, m.ops, [](const operation_use& op) { return text_list(by_share(op)); });
  to.write(",\n  \"common_funcs_to_op\": ");
  write_object(to, m.common(), [](const std::set<std::string>& ops) { return text_list(ops); });
  to.write(",\n  \"unit\": " + json_string(m.unit) + ",\n  \"functions\": ");
  write_object(to, m.ops, use_object);
  to.write("\n}\n");
}

mapping read_mapping(const std::string& path) {
  const std::string text = read_text(path);
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(text.data(), text.size());
  if (document.HasParseError()) {
    const auto end = text.begin() +
                     static_cast<std::ptrdiff_t>(std::min(document.GetErrorOffset(), text.size()));
    const auto line = static_cast<std::size_t>(std::count(text.begin(), end, '\n')) + 1;
    throw input_error(at_line(path, line, rapidjson::GetParseError_En(document.GetParseError())));
  }
  if (!document.IsObject()) throw input_error(path + ": not a mapping, expected an object");
  mapping result;
  for (const auto& op : object_member(document, "op_to_func", path).GetObject()) {
    operation_use& use = result.ops[op.name.GetString()];
    if (!op.value.IsArray()) throw input_error(path + ": an operation's functions are no list");
    for (const json& function : op.value.GetArray()) {
      use.functions[text_of(function, path)] = {};
    }
  }
  if (document.HasMember("functions")) {
    for (const auto& op : object_member(document, "functions", path).GetObject()) {
      const auto known = result.ops.find(op.name.GetString());
      if (known != result.ops.end() && op.value.IsObject()) read_uses(op.value, known->second);
    }
  }
  const auto unit = document.FindMember("unit");
  if (unit != document.MemberEnd() && unit->value.IsString()) result.unit = unit->value.GetString();
  return result;
}

}  // namespace lotus::tool
