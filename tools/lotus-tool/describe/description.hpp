// Describes each type of result once: the key, meaning, type, title and unit of every value. JSON
// outputs, their schemas, the reference, CSV files and tables are made from these descriptions.
#ifndef LOTUS_TOOL_DESCRIBE_DESCRIPTION_HPP
#define LOTUS_TOOL_DESCRIBE_DESCRIPTION_HPP

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/formats/json_writer.hpp"

namespace lotus::tool {

class object_description;

/// The type of a value in JSON.
struct value_type {
  enum class kind : std::uint8_t {
    text,
    flag,
    integer,
    natural,
    number,
    list,
    by_name,
    object,
    one_of  ///< a value of one of several types
  };
  kind is = kind::text;
  bool or_null = false;
  /// The type of the values of a list or of a by_name object; the types of which it is one.
  std::vector<value_type> of = {};
  /// Returns the description of an object. A function, so that descriptions are made when needed.
  const object_description& (*object)() = nullptr;
  std::vector<std::string_view> words = {};  ///< if not empty, a text is one of these
};

/// The value of a cell: a whole number, another number, or a text; monostate if it is missing.
using datum = std::variant<std::monostate, std::int64_t, double, std::string>;

/// How people read a number.
enum class unit : std::uint8_t { plain, time_ns, share, bytes, three_digits, batches_per_s };

/// How tables show a value.
struct column {
  std::string_view title;
  unit in = unit::plain;
  /// If lines are too wide, columns with a number are left out, the lowest first.
  unsigned dropped = 0;
  std::string_view missing = "-";  ///< what a cell contains if the value is missing
};

/// Option of a field: the key is left out if the value is missing, empty, 0 or false.
struct if_any_option {};
inline constexpr if_any_option if_any{};
/// Option of a field: the outputs that contain it, as bits; without this option, all do.
struct in {
  unsigned bits;
};
/// Option of a field: the only texts that its value can be.
struct words {
  std::vector<std::string_view> all;
};

template <std::size_t N>
words words_of(const char* const (&list)[N]) {
  return {{list, list + N}};
}

/// JSON that is not described yet.
struct raw_json {
  std::string text;
};

/// Values by name that are made one after the other, because there may be a million.
template <class V>
struct named_values {
  std::function<void(const std::function<void(std::string_view name, const V&)>&)> for_each;
  bool any = true;
};
/// The same without names.
template <class V>
struct value_list {
  std::function<void(const std::function<void(const V&)>&)> for_each;
  bool any = true;
};

/// What is known of a field without its value.
struct field_facts {
  std::string_view key;  ///< key in JSON; "": only tables contain it
  std::string meaning;
  value_type type = {};
  bool always = true;  ///< whether objects always have this key
  unsigned outputs = ~0U;
  column shown = {};
};

/// A described type of JSON object. The name identifies it in the schema of an output.
class object_description {
 public:
  object_description(std::string_view name, std::string_view meaning)
      : name_(name), meaning_(meaning) {}
  object_description(const object_description&) = default;
  object_description(object_description&&) = default;
  object_description& operator=(const object_description&) = delete;
  object_description& operator=(object_description&&) = delete;
  virtual ~object_description() = default;

  std::string_view name() const noexcept { return name_; }
  std::string_view meaning() const noexcept { return meaning_; }
  /// Returns the members of the JSON object.
  virtual std::vector<const field_facts*> facts() const = 0;

 private:
  std::string_view name_;
  std::string_view meaning_;
};

/// Returns the exact text of a value, as in CSV; "" if it is missing.
std::string exact_text(const datum& value);
/// Returns a value for people to read, such as "1.2 ms" or "34 %".
std::string human_text(const column& of, const datum& value);

namespace describing {

template <class V, class = void>
struct has_description : std::false_type {};
template <class V>
struct has_description<V, std::void_t<decltype(description_of(static_cast<const V*>(nullptr)))>>
    : std::true_type {};

/// The kinds of values that a field can have, with the type of what is inside.
enum class shape : std::uint8_t {
  scalar,
  optional,
  pointer,
  object,
  list,
  lazy_list,
  map,
  lazy_map,
  variant
};
template <class V>
struct shape_of {
  static constexpr shape is = has_description<V>::value ? shape::object : shape::scalar;
};
template <shape Is, class Inner>
struct shape_with {
  static constexpr shape is = Is;
  using inner = Inner;
};
template <class V>
struct shape_of<std::optional<V>> : shape_with<shape::optional, V> {};
template <class V>
struct shape_of<const V*> : shape_with<shape::pointer, V> {};
template <>
struct shape_of<const char*> : shape_with<shape::scalar, char> {};
template <class V>
struct shape_of<std::vector<V>> : shape_with<shape::list, V> {};
template <class V>
struct shape_of<value_list<V>> : shape_with<shape::lazy_list, V> {};
template <class Name, class V, class Less>
struct shape_of<std::map<Name, V, Less>> : shape_with<shape::map, V> {};
template <class V>
struct shape_of<std::vector<std::pair<std::string, V>>> : shape_with<shape::map, V> {};
template <class V>
struct shape_of<named_values<V>> : shape_with<shape::lazy_map, V> {};

template <class... Values>
struct shape_of<std::variant<Values...>> {
  static constexpr shape is = shape::variant;
  template <class Type>
  static std::vector<value_type> types(const Type& type) {
    return {type(static_cast<const Values*>(nullptr))...};
  }
};

template <class V>
value_type type_of() {
  using kind = value_type::kind;
  constexpr shape is = shape_of<V>::is;
  if constexpr (is == shape::optional || is == shape::pointer) {
    value_type inner = type_of<typename shape_of<V>::inner>();
    inner.or_null = true;
    return inner;
  } else if constexpr (is == shape::object) {
    return {kind::object, false, {}, []() -> const object_description& {
              return description_of(static_cast<const V*>(nullptr));
            }};
  } else if constexpr (is == shape::list || is == shape::lazy_list) {
    return {kind::list, false, {type_of<typename shape_of<V>::inner>()}};
  } else if constexpr (is == shape::map || is == shape::lazy_map) {
    return {kind::by_name, false, {type_of<typename shape_of<V>::inner>()}};
  } else if constexpr (is == shape::variant) {
    return {kind::one_of, false, shape_of<V>::types([](const auto* of) {
              return type_of<std::decay_t<decltype(*of)>>();
            })};
  } else if constexpr (std::is_same_v<V, raw_json>) {
    return {kind::object};
  } else if constexpr (std::is_same_v<V, bool>) {
    return {kind::flag};
  } else if constexpr (std::is_integral_v<V>) {
    return {std::is_unsigned_v<V> ? kind::natural : kind::integer};
  } else if constexpr (std::is_same_v<V, double>) {
    return {kind::number};
  } else {
    static_assert(std::is_convertible_v<const V&, std::string_view>,
                  "neither described nor a text");
    return {kind::text};
  }
}

template <class V>
bool is_empty(const V& value) {
  constexpr shape is = shape_of<V>::is;
  if constexpr (is == shape::optional || is == shape::pointer) {
    return !value;
  } else if constexpr (is == shape::lazy_list || is == shape::lazy_map) {
    return !value.any;
  } else if constexpr (is == shape::list || is == shape::map) {
    return value.empty();
  } else if constexpr (std::is_arithmetic_v<V>) {
    return value == V{};
  } else if constexpr (std::is_same_v<V, raw_json>) {
    return value.text.empty();
  } else if constexpr (is == shape::scalar) {
    return std::string_view(value).empty();
  } else {
    return false;
  }
}

}  // namespace describing

/// Writes a value; each object in a list and each value of a by_name object on a line of its own.
template <class V>
void write_value(json_writer& json, const V& value) {
  using describing::shape;
  using describing::shape_of;
  constexpr shape is = shape_of<V>::is;
  if constexpr (is == shape::variant) {
    std::visit([&json](const auto& one) { write_value(json, one); }, value);
  } else if constexpr (is == shape::optional || is == shape::pointer) {
    if (value) {
      write_value(json, *value);
    } else {
      json.value(nullptr);
    }
  } else if constexpr (is == shape::object) {
    json.begin_object();
    description_of(static_cast<const V*>(nullptr)).write_members(json, value);
    json.end_object();
  } else if constexpr (is == shape::list || is == shape::lazy_list) {
    const auto write = [&](const auto& one) {
      if (shape_of<typename shape_of<V>::inner>::is != shape::scalar) json.newline();
      write_value(json, one);
      json.pour();
    };
    json.begin_array();
    if constexpr (is == shape::list) {
      for (const auto& one : value) write(one);
    } else if (value.any) {
      value.for_each(write);
    }
    json.end_array();
  } else if constexpr (is == shape::map || is == shape::lazy_map) {
    const auto write = [&](std::string_view name, const auto& one) {
      if (shape_of<typename shape_of<V>::inner>::is != shape::scalar) json.newline();
      json.key(name);
      write_value(json, one);
      json.pour();
    };
    json.begin_object();
    if constexpr (is == shape::map) {
      for (const auto& [name, one] : value) write(name, one);
    } else if (value.any) {
      value.for_each(write);
    }
    json.end_object();
  } else if constexpr (std::is_same_v<V, raw_json>) {
    json.raw(value.text);
  } else {
    json.value(value);
  }
}

namespace describing {

/// Returns a scalar as the value of a cell; a missing one if the value is no scalar.
template <class V>
datum datum_of(const V& value) {
  if constexpr (shape_of<V>::is == shape::optional) {
    return value ? datum_of(*value) : datum();
  } else if constexpr (shape_of<V>::is != shape::scalar || std::is_same_v<V, raw_json>) {
    return {};
  } else if constexpr (std::is_same_v<V, double>) {
    return value;
  } else if constexpr (std::is_integral_v<V>) {
    return static_cast<std::int64_t>(value);
  } else {
    return std::string(value);
  }
}

}  // namespace describing

/// A value of an object T: its description, and how to get it.
template <class T>
struct field : field_facts {
  /// @param get  a member of T, or a function that returns the value.
  /// @param options  if_any, in, words, column, or a function bool(const T&) that returns whether
  ///   the object has this key.
  template <class Get, class... Options>
  field(std::string_view the_key, Get get, std::string_view the_meaning,
        const Options&... options) {
    using value_of = std::decay_t<std::invoke_result_t<Get, const T&>>;
    constexpr bool only_if_any = (std::is_same_v<Options, if_any_option> || ...);
    key = the_key;
    meaning = the_meaning;
    type = describing::type_of<value_of>();
    (set(options), ...);
    if constexpr (only_if_any) always = type.or_null = false;
    if constexpr ((std::is_same_v<Options, column> || ...)) {
      value = [get](const T& of) { return describing::datum_of<value_of>(std::invoke(get, of)); };
    }
    const bool on_line = type.object != nullptr || !type.of.empty();
    write = [get, on_line, key = key](json_writer& json, const T& of) {
      const value_of& got = std::invoke(get, of);
      if (only_if_any && describing::is_empty(got)) return;
      if (on_line) json.newline();
      json.key(key);
      write_value<value_of>(json, got);
    };
  }

  /// The same field of an object of which another one is a part.
  template <class Part, class Get>
  field(const field<Part>& of_part, Get part_of) : field_facts(of_part) {
    if (of_part.value) {
      value = [part_of, get = of_part.value](const T& of) { return get(std::invoke(part_of, of)); };
    }
    write = [part_of, write_part = of_part.write](json_writer& json, const T& of) {
      write_part(json, std::invoke(part_of, of));
    };
    if (of_part.has) {
      has = [part_of, part_has = of_part.has](const T& of) {
        return part_has(std::invoke(part_of, of));
      };
    }
  }

  std::function<datum(const T&)> value;  ///< only of fields with a column
  std::function<void(json_writer&, const T&)> write;
  std::function<bool(const T&)> has;  ///< if set, whether the object has this key

 private:
  void set(if_any_option) {}
  void set(in of) { outputs = of.bits; }
  void set(const column& of) { shown = of; }
  void set(const words& of) { (type.of.empty() ? type.words : type.of.front().words) = of.all; }
  template <class Has, class = std::enable_if_t<std::is_invocable_r_v<bool, Has, const T&>>>
  void set(Has of) {
    has = of;
    always = false;
  }
};

/// The description of a type of result. `description_of(const T*)` returns the description of T.
template <class T>
class description : public object_description {
 public:
  description(std::string_view name, std::string_view meaning, std::vector<field<T>> fields = {})
      : object_description(name, meaning), fields_(std::move(fields)) {}

  const std::vector<field<T>>& fields() const noexcept { return fields_; }
  std::vector<const field_facts*> facts() const override {
    std::vector<const field_facts*> all;
    for (const field<T>& of : fields_) {
      if (!of.key.empty()) all.push_back(&of);
    }
    return all;
  }

  /// Adds fields behind those that are there.
  description&& with(std::vector<field<T>> more) && {
    for (field<T>& of : more) fields_.push_back(std::move(of));
    return std::move(*this);
  }
  /// Adds the fields of a part.
  /// @param outputs  only the fields that one of these outputs contains.
  template <class Part, class Get>
  description&& with_part(const description<Part>& part, Get part_of, unsigned outputs = ~0U) && {
    for (const field<Part>& of : part.fields()) {
      if ((of.outputs & outputs) != 0) fields_.emplace_back(of, part_of);
    }
    return std::move(*this);
  }
  /// Adds the fields of a base class.
  template <class Base>
  description&& with_base(const description<Base>& base, unsigned outputs = ~0U) && {
    static_assert(std::is_base_of_v<Base, T>);
    return std::move(*this).with_part(
        base, [](const T& of) -> const Base& { return of; }, outputs);
  }

  /// Writes the members of the JSON object of `of`.
  void write_members(json_writer& json, const T& of) const {
    for (const field<T>& one : fields_) {
      if (one.key.empty() || (one.has && !one.has(of))) continue;
      one.write(json, of);
    }
  }

 private:
  std::vector<field<T>> fields_;
};

/// Returns a number, or nothing if JSON cannot represent it.
inline std::optional<double> if_finite(double number) {
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

/// The results for several loaders of a run.
template <class T>
struct several {
  std::vector<T> runs;
};
template <class T>
const description<several<T>>& description_of(const several<T>*) {
  static const description<several<T>> all("runs", "several loaders of a run, or runs",
                                           {{"runs", &several<T>::runs, "one for each"}});
  return all;
}
/// A single result is printed as its own object.
template <class T>
using one_or_several = std::variant<T, several<T>>;
template <class T>
one_or_several<T> one_or_more(std::vector<T> all) {
  if (all.size() == 1) return std::move(all.front());
  return several<T>{std::move(all)};
}

/// Returns the type of an output.
template <class T>
value_type type_of_output() {
  return describing::type_of<T>();
}

/// Prints a result as JSON.
template <class T>
void print_json(const T& result, std::ostream& out) {
  std::string text;
  json_writer json(text);
  json.pour_to(out);
  write_value(json, result);
  out << text << '\n';
}

}  // namespace lotus::tool

#endif  // LOTUS_TOOL_DESCRIBE_DESCRIPTION_HPP
