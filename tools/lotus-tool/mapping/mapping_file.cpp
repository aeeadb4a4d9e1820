#include "mapping/mapping_file.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/errors.hpp"
#include "base/files/output_file.hpp"
#include "base/formats/json_reader.hpp"
#include "base/formats/json_writer.hpp"
#include "mapping/mapping.hpp"
#include "mapping/read/table_text.hpp"

namespace lotus::tool {
namespace {

/// Writes an object {"a": …, "b": …} with each member on a line of its own.
template <class Map, class WriteValue>
void write_object(const Map& members, json_writer& to, WriteValue&& write_value) {
  to.begin_object();
  for (const auto& [name, member] : members) {
    to.newline(4).key(name);
    write_value(member);
  }
  if (!members.empty()) to.newline(2);
  to.end_object();
}

template <class Texts>
void write_texts(const Texts& texts, json_writer& to) {
  to.begin_array();
  for (const std::string& text : texts) to.value(text);
  to.end_array();
}

void write_uses(const operation_use& op, json_writer& to) {
  to.begin_object();
  for (const std::string& function : by_share(op)) {
    const function_use& use = op.functions.at(function);
    to.newline(6).key(function).begin_object().member("hits", use.hits).member("runs", op.runs);
    to.member("samples", use.samples).member("share", use.share);
    // Inlined functions are known only if the program has debug information.
    if (!use.inlined.empty()) {
      to.key("inlined").begin_object();
      for (const auto& [inner, samples] : use.inlined) to.member(inner, samples);
      to.end_object();
    }
    to.end_object();
  }
  to.end_object();
}

using nlohmann::json;

const json& object_member(const json& object, const char* key, const std::string& path) {
  const auto at = object.find(key);
  if (at == object.end() || !at->is_object()) {
    throw input_error(path + ": not a mapping, it has no object '" + key + "'");
  }
  return *at;
}

std::string text_of(const json& value, const std::string& path) {
  if (!value.is_string()) throw input_error(path + ": a function's name is not a text");
  return value.get<std::string>();
}

/// Returns a number that is at least 0 (and never -0), because nothing in a mapping is negative.
double amount_member(const json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_number() ? std::max(0.0, at->get<double>()) : 0;
}

std::uint64_t count_member(const json& object, const char* key) {
  constexpr double most = 1e18;  // a larger number cannot be a count
  return static_cast<std::uint64_t>(std::min(amount_member(object, key), most));
}

void read_uses(const json& functions, operation_use& op) {
  for (const auto& [name, f] : functions.items()) {
    const auto known = op.functions.find(name);
    if (known == op.functions.end() || !f.is_object()) continue;
    op.runs = std::max(op.runs, count_member(f, "runs"));
    known->second.hits = count_member(f, "hits");
    known->second.samples = amount_member(f, "samples");
    known->second.share = amount_member(f, "share");
  }
}

}  // namespace

void write_mapping(const mapping& m, output_file& out) {
  std::string text;
  json_writer to(text, json_style::spaced);
  to.begin_object().newline(2).key("op_to_func");
  write_object(m.ops, to, [&to](const operation_use& op) { write_texts(by_share(op), to); });
  to.newline(2).key("common_funcs_to_op");
  write_object(m.common(), to, [&to](const std::set<std::string>& ops) { write_texts(ops, to); });
  to.newline(2).member("unit", m.unit).newline(2).key("functions");
  write_object(m.ops, to, [&to](const operation_use& op) { write_uses(op, to); });
  to.newline().end_object();
  out.write(text);
  out.write("\n");
}

mapping read_mapping(const std::string& path) {
  const json document = parse_json(path, read_text(path));
  if (!document.is_object()) throw input_error(path + ": not a mapping, expected an object");
  mapping result;
  for (const auto& [name, functions] : object_member(document, "op_to_func", path).items()) {
    operation_use& use = result.ops[name];
    if (!functions.is_array())
      throw input_error(path + ": an operation's functions are not a list");
    for (const json& function : functions) use.functions[text_of(function, path)] = {};
  }
  if (document.contains("functions")) {
    for (const auto& [name, functions] : object_member(document, "functions", path).items()) {
      const auto known = result.ops.find(name);
      if (known != result.ops.end() && functions.is_object()) read_uses(functions, known->second);
    }
  }
  const auto unit = document.find("unit");
  if (unit != document.end() && unit->is_string()) result.unit = unit->get<std::string>();
  return result;
}

}  // namespace lotus::tool
