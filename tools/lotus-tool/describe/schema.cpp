#include "describe/schema.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/text.hpp"

namespace lotus::tool {
namespace {

using json = nlohmann::ordered_json;

/// Calls `visit` for each object inside a value, each once, the outer ones first.
template <class Visit>
void for_each_object(const value_type& type, std::vector<const object_description*>& seen,
                     const Visit& visit) {
  for (const value_type& inner : type.of) for_each_object(inner, seen, visit);
  if (type.object == nullptr) return;
  const object_description& of = type.object();
  if (std::find(seen.begin(), seen.end(), &of) != seen.end()) return;
  seen.push_back(&of);
  visit(of);
  for (const field_facts* field : of.facts()) for_each_object(field->type, seen, visit);
}

json schema_of(const value_type& type) {
  using kind = value_type::kind;
  json schema;
  const auto type_named = [&](const char* name) {
    schema["type"] = type.or_null ? json{name, "null"} : json(name);
  };
  switch (type.is) {
    case kind::text:
      type_named("string");
      break;
    case kind::flag:
      type_named("boolean");
      break;
    case kind::integer:
      type_named("integer");
      break;
    case kind::natural:
      type_named("integer");
      schema["minimum"] = 0;
      break;
    case kind::number:
      type_named("number");
      break;
    case kind::list:
      type_named("array");
      schema["items"] = schema_of(type.of.front());
      break;
    case kind::by_name:
      type_named("object");
      schema["additionalProperties"] = schema_of(type.of.front());
      break;
    case kind::one_of:
      for (const value_type& one : type.of) schema["anyOf"].push_back(schema_of(one));
      if (type.or_null) schema["anyOf"].push_back({{"type", "null"}});
      break;
    case kind::object: {
      if (type.object == nullptr) {
        type_named("object");
        break;
      }
      const json reference{{"$ref", "#/$defs/" + std::string(type.object().name())}};
      if (!type.or_null) return reference;
      schema["anyOf"] = json{reference, {{"type", "null"}}};
      break;
    }
  }
  if (!type.words.empty()) {
    json& words = schema["enum"];
    for (const std::string_view word : type.words) words.push_back(word);
    if (type.or_null) words.push_back(nullptr);
  }
  return schema;
}

json schema_of(const object_description& of) {
  json schema{{"description", of.meaning()}, {"type", "object"}, {"properties", json::object()}};
  json required = json::array();
  for (const field_facts* field : of.facts()) {
    json value{{"description", field->meaning}};
    value.update(schema_of(field->type));
    schema["properties"][std::string(field->key)] = std::move(value);
    if (field->always) required.push_back(field->key);
  }
  if (!required.empty()) schema["required"] = std::move(required);
  schema["additionalProperties"] = false;
  return schema;
}

/// Returns a type in words, with the name of an object, such as "list of batch".
std::string type_text(const value_type& type) {
  using kind = value_type::kind;
  switch (type.is) {
    case kind::list:
      return "list of " + type_text(type.of.front());
    case kind::by_name:
      return "by name: " + type_text(type.of.front());
    case kind::object:
      return type.object == nullptr ? "object" : std::string(type.object().name());
    case kind::one_of:
      return joined(type.of, " or ", type_text);
    case kind::text:
      break;
    case kind::flag:
      return "true or false";
    case kind::integer:
    case kind::natural:
      return "integer";
    case kind::number:
      return "number";
  }
  if (type.words.empty()) return "text";
  return "`\"" + joined(type.words, "\"`, `\"") + "\"`";
}

}  // namespace

void print_schema(std::string_view title, const value_type& output, std::ostream& out) {
  json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", title}};
  schema.update(schema_of(output));
  json& definitions = schema["$defs"];
  std::vector<const object_description*> seen;
  for_each_object(output, seen, [&](const object_description& of) {
    json& definition = definitions[std::string(of.name())];
    if (!definition.is_null())
      throw std::logic_error("two objects are named " + std::string(of.name()));
    definition = schema_of(of);
  });
  out << schema.dump(1) << '\n';
}

void print_keys(const value_type& output, std::ostream& out) {
  std::vector<const object_description*> seen;
  for_each_object(output, seen, [&](const object_description& of) {
    if (seen.size() > 1) out << '\n';
    out << "**" << of.name() << "**: " << of.meaning() << "\n\n| key | value | |\n|---|---|---|\n";
    for (const field_facts* field : of.facts()) {
      out << "| `" << field->key << "` | " << type_text(field->type)
          << (field->type.or_null ? " or null" : "") << (field->always ? "" : ", may be absent")
          << " | " << replaced(field->meaning, "|", "\\|") << " |\n";
    }
  });
}

}  // namespace lotus::tool
