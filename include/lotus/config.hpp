// Compile-time settings, attributes and the inline namespace.
#ifndef LOTUS_CONFIG_HPP
#define LOTUS_CONFIG_HPP

#include "lotus/version.hpp"

/// 1 if scopes are recorded: on Linux with x86-64 or aarch64. Elsewhere lotus/lotus.hpp compiles
/// with g++ and clang, but records nothing: start() returns false.
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
// Encloses code of the engine that runs rarely: opening and closing, recovery, limits, snapshots,
// other profilers. A header-only file compiles all of it, which would take most of its compile time
// at -O2; -Og takes half the time and gives less code. It must not enclose anything that runs for
// each record or each scope, or any function that such code needs inlined: g++ does not inline
// across this border. It never raises the optimization or code size of the file; the compiled
// library is compiled once, with its builder's options.
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
// Marks functions that the front end calls and the engine defines. LOTUS_IMPLEMENTATION makes its
// file emit them even if that file does not call them. They stay inline, so that they merge with
// those of header-only files of the same program.
#if defined(LOTUS_IMPLEMENTATION)
  #define LOTUS_DETAIL_SEAM __attribute__((used)) inline
#else
  #define LOTUS_DETAIL_SEAM inline
#endif
// Marks a declaration in the front end whose definition is LOTUS_DETAIL_COLD and LOTUS_DETAIL_SEAM.
#define LOTUS_DETAIL_RARE LOTUS_DETAIL_PER_MODULE __attribute__((cold))
// Marks state that each shared object has for itself, and the functions that use it. Without it the
// linker would merge this state between objects built with default visibility, and STB_GNU_UNIQUE
// would keep a plugin from unloading.
#if defined(__ELF__)
  #define LOTUS_DETAIL_PER_MODULE __attribute__((visibility("hidden")))
#else
  #define LOTUS_DETAIL_PER_MODULE
#endif
// Used inside a function: runs `called`, a function without parameters, when the object is loaded,
// before its static constructors, once for each file that keeps the enclosing function. A variable
// with a constructor would do so in every file that includes the header.
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
// Without this, g++ runs the constructor of a template's static member only when the object is
// loaded: a scope in an earlier static constructor would find it uninitialized.
#if defined(__clang__)
  #define LOTUS_DETAIL_CONSTINIT [[clang::require_constant_initialization]]
#elif __GNUC__ >= 10
  #define LOTUS_DETAIL_CONSTINIT __constinit
#else
  #define LOTUS_DETAIL_CONSTINIT
#endif

#endif  // LOTUS_CONFIG_HPP
