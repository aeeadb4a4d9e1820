#include "tool/json.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"

namespace lotus::tool_test {

using nlohmann::ordered_json;

json json::parse(const std::string& text) {
  try {
    return json(std::make_shared<ordered_json>(ordered_json::parse(text)));
  } catch (const ordered_json::exception& error) {
    FAIL(error.what() << " in " << text.substr(0, 2000));
    throw;
  }
}

json json::part(const ordered_json& value) const {
  return json(std::shared_ptr<const ordered_json>(value_, &value));
}

json json::operator[](const std::string& key) const {
  return part(value_->at(key));
}

json json::operator[](std::size_t index) const {
  return part(value_->at(index));
}

bool json::has(const std::string& key) const {
  return value_->contains(key);
}

std::size_t json::size() const {
  if (!value_->is_structured()) throw std::runtime_error("has no size: " + value_->dump());
  return value_->size();
}

std::vector<json> json::array() const {
  std::vector<json> elements;
  for (const auto& element : value_->get_ref<const ordered_json::array_t&>()) {
    elements.push_back(part(element));
  }
  return elements;
}

std::vector<json::member> json::members() const {
  std::vector<member> all;
  for (const auto& [name, value] : value_->get_ref<const ordered_json::object_t&>()) {
    all.push_back({name, part(value)});
  }
  return all;
}

std::string json::text() const {
  return value_->get_ref<const std::string&>();
}

std::int64_t json::integer() const {
  if (!value_->is_number_integer()) throw std::runtime_error("no integer: " + value_->dump());
  return value_->get<std::int64_t>();
}

double json::number() const {
  return value_->get<double>();
}

bool json::boolean() const {
  return value_->get<bool>();
}

bool json::is_null() const {
  return value_->is_null();
}

bool json::is_number() const {
  return value_->is_number();
}

bool json::is_text() const {
  return value_->is_string();
}

bool json::is_array() const {
  return value_->is_array();
}

bool json::is_object() const {
  return value_->is_object();
}

std::string json::canonical(const std::string& left_out) const {
  if (!is_object()) return nlohmann::json(*value_).dump();
  std::map<std::string, std::string> sorted;
  for (const auto& [name, value] : members()) sorted[name] = value.canonical();
  sorted.erase(left_out);
  std::string text = "{";
  for (const auto& [name, value] : sorted) text += name + ':' + value + ',';
  return text + '}';
}

}  // namespace lotus::tool_test
