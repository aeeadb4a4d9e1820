// Describes each type of result once: the key, meaning, type, title and unit of every value. JSON
// outputs, their schemas, the reference, CSV files and tables are made from these descriptions.
#ifndef LOTUS_TOOL_DESCRIBE_DESCRIPTION_HPP
#define LOTUS_TOOL_DESCRIBE_DESCRIPTION_HPP

#include <array>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <new>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/formats/json_writer.hpp"
#include "describe/values.hpp"

namespace lotus::tool {

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
  } else if constexpr (describing::has_text<V>::value) {
    json.value(text_of(value));
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
  } else if constexpr (shape_of<V>::is != shape::scalar) {
    return {};
  } else if constexpr (std::is_same_v<V, double>) {
    return value;
  } else if constexpr (std::is_integral_v<V>) {
    return static_cast<std::int64_t>(value);
  } else if constexpr (has_text<V>::value) {
    return text_of(value);
  } else {
    return std::string(value);
  }
}

/// Stores a small function object or a pointer to a member. The caller that reads it must know its
/// type.
class stored_function {
 public:
  stored_function() = default;
  template <class F>
  explicit stored_function(F function) {
    static_assert(std::is_trivially_copyable_v<F> && sizeof(F) <= sizeof bytes_);
    new (bytes_.data()) F(function);
  }
  template <class F>
  const F& as() const noexcept {
    return *std::launder(reinterpret_cast<const F*>(bytes_.data()));
  }

 private:
  alignas(std::max_align_t) std::array<unsigned char, 32> bytes_{};
};

/// What one option changes of a field.
struct field_option {
  bool only_if_any = false;
  unsigned outputs = ~0U;
  const column* shown = nullptr;
  const words* all = nullptr;
  stored_function condition = {};
  bool (*has)(const stored_function&, const void*) = nullptr;
};

}  // namespace describing

/// A value of an object: its description, and how to get it. Only field_of knows the type of the
/// object, so that this code is compiled once for all types.
class field : public field_facts {
 public:
  /// Returns the value as a cell; missing if the field has no column, or the object not this key.
  /// @param of  an object of the described type; likewise below.
  datum value(const void* of) const;
  /// Returns whether the object has this key.
  bool has(const void* of) const;
  /// Writes the key and the value, or nothing if the value is empty and the option if_any is set.
  void write(json_writer& json, const void* of) const;

  /// Makes this a field of T, of which the object is a part.
  template <class T, class Get>
  void set_part(Get part_of) {
    static_assert(std::is_reference_v<std::invoke_result_t<Get, const T&>>);
    parts_.push_back({function(part_of), [](const function& get, const void* of) -> const void* {
                        return &std::invoke(get.as<Get>(), *static_cast<const T*>(of));
                      }});
  }

 protected:
  using function = describing::stored_function;
  using option = describing::field_option;

  field(std::string_view the_key, std::string_view the_meaning, value_type the_type);
  void set(const option& given);
  /// Writes what precedes the value. Returns false if the field is to be left out.
  bool begin(json_writer& json, bool is_empty) const;

  function get_;
  datum (*value_)(const function& get, const void* of) = nullptr;
  void (*write_)(const field& described, json_writer& json, const void* of) = nullptr;

 private:
  struct part {
    function get;
    const void* (*of)(const function& get, const void* whole);
  };
  const void* described_part(const void* of) const;

  bool only_if_any_ = false;
  bool has_column_ = false;
  function condition_;
  bool (*has_)(const function& get, const void* of) = nullptr;
  std::vector<part> parts_;  // the way to the described object, the innermost part first
};

template <class T>
class field_of : public field {
 public:
  /// if_any, in, words, column, or a function bool(const T&) that returns whether the object has
  /// this key.
  struct option : describing::field_option {
    option() = default;
    option(if_any_option /*is*/) { only_if_any = true; }  // NOLINT(google-explicit-constructor)
    option(in is) { outputs = is.bits; }                  // NOLINT(google-explicit-constructor)
    option(const column& is) { shown = &is; }             // NOLINT(google-explicit-constructor)
    option(const words& is) { all = &is; }                // NOLINT(google-explicit-constructor)
    template <class Has, class = std::enable_if_t<std::is_invocable_r_v<bool, Has, const T&>>>
    option(Has is) {  // NOLINT(google-explicit-constructor)
      condition = function(is);
      has = [](const function& get, const void* of) -> bool {
        return std::invoke(get.as<Has>(), *static_cast<const T*>(of));
      };
    }
  };

  /// @param get  a member of T, or a function that returns the value.
  template <class Get>
  field_of(std::string_view the_key, Get get, std::string_view the_meaning,
           const option& first = {}, const option& second = {}, const option& third = {})
      : field(the_key, the_meaning, describing::type_of<got<Get>>()) {
    for (const option* one : {&first, &second, &third}) set(*one);
    get_ = function(get);
    value_ = [](const function& stored, const void* of) {
      return describing::datum_of<got<Get>>(
          std::invoke(stored.as<Get>(), *static_cast<const T*>(of)));
    };
    write_ = [](const field& described, json_writer& json, const void* of) {
      const auto& self = static_cast<const field_of&>(described);
      const got<Get>& value = std::invoke(self.get_.template as<Get>(), *static_cast<const T*>(of));
      if (self.begin(json, describing::is_empty(value))) write_value<got<Get>>(json, value);
    };
  }

 private:
  template <class Get>
  using got = std::decay_t<std::invoke_result_t<Get, const T&>>;
};

/// A described type of JSON object. The name identifies it in the schema of an output.
class object_description {
 public:
  object_description(std::string_view name, std::string_view meaning)
      : name_(name), meaning_(meaning) {}

  std::string_view name() const noexcept { return name_; }
  std::string_view meaning() const noexcept { return meaning_; }
  const std::vector<field>& fields() const noexcept { return fields_; }
  /// Returns the members of the JSON object.
  std::vector<const field_facts*> facts() const;

 protected:
  void add(field more);
  void write_fields(json_writer& json, const void* of) const;

 private:
  std::string_view name_;
  std::string_view meaning_;
  std::vector<field> fields_;
};

/// The description of a type of result. `description_of(const T*)` returns the description of T.
template <class T>
class description : public object_description {
 public:
  description(std::string_view name, std::string_view meaning,
              std::initializer_list<field_of<T>> fields = {})
      : object_description(name, meaning) {
    for (const field_of<T>& of : fields) add(of);
  }

  /// Adds fields behind those that are there.
  description&& with(std::initializer_list<field_of<T>> more) && {
    for (const field_of<T>& of : more) add(of);
    return std::move(*this);
  }
  /// Adds the fields of a part.
  /// @param outputs  only the fields that one of these outputs contains.
  template <class Part, class Get>
  description&& with_part(const description<Part>& part, Get part_of, unsigned outputs = ~0U) && {
    for (const field& of : part.fields()) {
      if ((of.outputs & outputs) == 0) continue;
      field whole = of;
      whole.set_part<T>(part_of);
      add(std::move(whole));
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
  void write_members(json_writer& json, const T& of) const { write_fields(json, &of); }
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
  static const std::string name =
      std::string(description_of(static_cast<const T*>(nullptr)).name()) + "_runs";
  static const description<several<T>> all(name, "several loaders of a run, or runs",
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

template <class T>
value_type type_of_output() {
  return describing::type_of<T>();
}

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
