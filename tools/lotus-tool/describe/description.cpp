#include "describe/description.hpp"

#include <algorithm>

#include "base/terminal/table.hpp"
#include "base/text.hpp"

namespace lotus::tool {

field::field(std::string_view the_key, std::string_view the_meaning, value_type the_type) {
  key = the_key;
  meaning = the_meaning;
  type = std::move(the_type);
}

void field::set(const option& given) {
  outputs &= given.outputs;
  if (given.only_if_any) {
    only_if_any_ = true;
    always = type.or_null = false;
  }
  if (given.shown != nullptr) {
    shown = *given.shown;
    has_column_ = true;
  }
  if (given.all != nullptr) {
    (type.of.empty() ? type.words : type.of.front().words) = given.all->all;
  }
  if (given.has != nullptr) {
    condition_ = given.condition;
    has_ = given.has;
    always = false;
  }
}

const void* field::described_part(const void* of) const {
  for (auto way = parts_.rbegin(); way != parts_.rend(); ++way) of = way->of(way->get, of);
  return of;
}

datum field::value(const void* of) const {
  return has_column_ && has(of) ? value_(get_, described_part(of)) : datum();
}

bool field::has(const void* of) const {
  return has_ == nullptr || has_(condition_, described_part(of));
}

void field::write(json_writer& json, const void* of) const {
  write_(*this, json, described_part(of));
}

bool field::begin(json_writer& json, bool is_empty) const {
  if (only_if_any_ && is_empty) return false;
  if (type.object != nullptr || !type.of.empty()) json.newline();
  json.key(key);
  return true;
}

std::vector<const field_facts*> object_description::facts() const {
  std::vector<const field_facts*> all;
  for (const field& of : fields_) {
    if (!of.key.empty()) all.push_back(&of);
  }
  return all;
}

void object_description::add(field more) {
  fields_.push_back(std::move(more));
}

void object_description::write_fields(json_writer& json, const void* of) const {
  for (const field& one : fields_) {
    if (!one.key.empty() && one.has(of)) one.write(json, of);
  }
}

std::string exact_text(const datum& value) {
  if (const auto* const whole = std::get_if<std::int64_t>(&value)) return std::to_string(*whole);
  if (const auto* const real = std::get_if<double>(&value)) return json_number(*real);
  const auto* const text = std::get_if<std::string>(&value);
  return text == nullptr ? std::string() : *text;
}

std::string human_text(const column& of, const datum& value) {
  double number = 0;
  if (const auto* const whole = std::get_if<std::int64_t>(&value)) {
    if (of.in == unit::plain) return std::to_string(*whole);
    number = static_cast<double>(*whole);
  } else if (const auto* const real = std::get_if<double>(&value)) {
    number = *real;
  } else if (const auto* const text = std::get_if<std::string>(&value)) {
    return *text;
  } else {
    return std::string(of.missing);
  }
  switch (of.in) {
    case unit::plain:
    case unit::three_digits:
      return three_digits(number);
    case unit::time_ns:
      return human_time(number);
    case unit::share:
      return human_share(number);
    case unit::bytes:
      return human_bytes(number);
    case unit::batches_per_s:
      return three_digits(number) + " batches/s";
    case unit::whole_share:
      return whole_percent(number < 1 ? std::min(number, 0.99) : number);
  }
  return {};
}

}  // namespace lotus::tool
