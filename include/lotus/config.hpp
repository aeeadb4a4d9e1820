// Compile-time knobs, attributes and the inline namespace.
#ifndef LOTUS_CONFIG_HPP
#define LOTUS_CONFIG_HPP

#include "lotus/version.hpp"

/// 1 where scopes are recorded: Linux on x86-64 and aarch64. Elsewhere lotus/lotus.hpp compiles,
/// with g++ and clang, and records nothing: start() returns false.
#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
  #define LOTUS_SUPPORTED 1
#else
  #define LOTUS_SUPPORTED 0
#endif

// Two versions of the library in one program must not share symbols, hence the inline namespace.
#define LOTUS_DETAIL_CONCAT_(a, b) a##b
#define LOTUS_DETAIL_CONCAT(a, b) LOTUS_DETAIL_CONCAT_(a, b)
#define LOTUS_DETAIL_ABI_(major, minor) v##major##_##minor
#define LOTUS_DETAIL_ABI(major, minor) LOTUS_DETAIL_ABI_(major, minor)
#define LOTUS_DETAIL_NAMESPACE_BEGIN \
  namespace lotus {                  \
  inline namespace LOTUS_DETAIL_ABI(LOTUS_VERSION_MAJOR, LOTUS_VERSION_MINOR) {
#define LOTUS_DETAIL_NAMESPACE_END \
  }                                \
  }
// Around what runs rarely in the engine: opening and closing, recovery, limits, snapshots, other
// profilers. A header-only file compiles all of it, and at -O2 that would take most of the time;
// -Og takes half, and less code. Around nothing that runs for each record or for each call of a
// scope, and no function that such code wants inlined: g++ inlines none across the border outward.
// Never more optimization, or larger code, than the file is compiled with; the compiled library is
// compiled once, as its builder says.
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__) && \
    !defined(__OPTIMIZE_SIZE__) && !defined(LOTUS_COMPILED)
  #define LOTUS_DETAIL_COLD_NAMESPACE_BEGIN \
    _Pragma("GCC push_options") _Pragma("GCC optimize(\"Og\")") LOTUS_DETAIL_NAMESPACE_BEGIN
  #define LOTUS_DETAIL_COLD_NAMESPACE_END \
    LOTUS_DETAIL_NAMESPACE_END            \
    _Pragma("GCC pop_options")
#else
  #define LOTUS_DETAIL_COLD_NAMESPACE_BEGIN LOTUS_DETAIL_NAMESPACE_BEGIN
  #define LOTUS_DETAIL_COLD_NAMESPACE_END LOTUS_DETAIL_NAMESPACE_END
#endif

#define LOTUS_DETAIL_STRINGIZE_(x) #x
#define LOTUS_DETAIL_STRINGIZE(x) LOTUS_DETAIL_STRINGIZE_(x)
#define LOTUS_DETAIL_VERSION_STRING           \
  LOTUS_DETAIL_STRINGIZE(LOTUS_VERSION_MAJOR) \
  "." LOTUS_DETAIL_STRINGIZE(LOTUS_VERSION_MINOR) "." LOTUS_DETAIL_STRINGIZE(LOTUS_VERSION_PATCH)

#define LOTUS_DETAIL_LIKELY(x) __builtin_expect(static_cast<bool>(x), 1)
#define LOTUS_DETAIL_UNLIKELY(x) __builtin_expect(static_cast<bool>(x), 0)
#define LOTUS_DETAIL_ALWAYS_INLINE inline __attribute__((always_inline))
#define LOTUS_DETAIL_COLD __attribute__((noinline, cold))
// What the front end calls and the engine defines, in the object file whoever calls it: that is
// what LOTUS_IMPLEMENTATION is for. Inline all the same, so that it is one with those of
// header-only files of the program.
#if defined(LOTUS_IMPLEMENTATION)
  #define LOTUS_DETAIL_SEAM __attribute__((used)) inline
#else
  #define LOTUS_DETAIL_SEAM inline
#endif
// Of a declaration in the front end whose definition is LOTUS_DETAIL_COLD and such a one.
#define LOTUS_DETAIL_RARE LOTUS_DETAIL_PER_MODULE __attribute__((cold))
// State that each shared object has for itself, and the functions that touch it. Without it the
// linker would merge them between objects built with default visibility, and STB_GNU_UNIQUE would
// keep a plugin from unloading.
#if defined(__ELF__)
  #define LOTUS_DETAIL_PER_MODULE __attribute__((visibility("hidden")))
#else
  #define LOTUS_DETAIL_PER_MODULE
#endif
// In a function: `called`, a function without parameters, runs when the object is loaded, before
// its static constructors, once for each file in which this function is kept. A variable with a
// constructor would do that in every file that includes the header.
#if defined(__aarch64__)
  #define LOTUS_DETAIL_ADDRESS_CONSTRAINT "S"
#else
  #define LOTUS_DETAIL_ADDRESS_CONSTRAINT "i"
#endif
#define LOTUS_DETAIL_CALL_AT_LOAD(called)                      \
  __asm__ volatile(                                            \
      ".pushsection .init_array.00102,\"aw\",%%init_array\n\t" \
      ".balign 8\n\t"                                          \
      ".8byte %c0\n\t"                                         \
      ".popsection"                                            \
      :                                                        \
      : LOTUS_DETAIL_ADDRESS_CONSTRAINT(called))
// g++ runs the constructor of a template's static when the object is loaded unless it is told not
// to: a scope in an earlier static constructor would find nothing there.
#if defined(__clang__)
  #define LOTUS_DETAIL_CONSTINIT [[clang::require_constant_initialization]]
#elif __GNUC__ >= 10
  #define LOTUS_DETAIL_CONSTINIT __constinit
#else
  #define LOTUS_DETAIL_CONSTINIT
#endif

#endif  // LOTUS_CONFIG_HPP
