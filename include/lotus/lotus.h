/* Records where a program in C, or in C++ before C++17, spends its time. Programs in C++17 include
 * lotus/lotus.hpp instead, which offers more; both may be used in one program.
 *
 *   static lotus_name resize = LOTUS_NAME("Resize");
 *   lotus_span span = lotus_begin(&resize);
 *   ...
 *   lotus_end(&span);
 *
 * The functions are in the compiled library (lotus::lotus), or in the C++17 file of the program
 * that defines LOTUS_IMPLEMENTATION and includes lotus/lotus.hpp. They never fail: if nothing is
 * being recorded, they do nothing. Thread safety: any thread may call each of them; a lotus_span
 * belongs to the thread that began it. With LOTUS_DISABLE they do nothing, and lotus_start()
 * returns 1. */
/* NOLINTBEGIN(modernize-*, hicpp-*, bugprone-macro-parentheses): this file is also C. */
#ifndef LOTUS_LOTUS_H
#define LOTUS_LOTUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The name of an operation, stage or counter. Use a static variable for each name, because the
 * library stores in it the id of the name. */
typedef struct lotus_name {
  const char* text; /* must stay valid */
  uint64_t id;
} lotus_name;
#define LOTUS_NAME(text) {text, 0}

/* A span that has begun. End it with the function that is named where it begins, or discard it. */
typedef struct lotus_span {
  uint64_t begin_ticks; /* 0: nothing is recorded */
  uint64_t tag;
  uint64_t number;
} lotus_span;

#if defined(LOTUS_DISABLE) && !defined(LOTUS_IMPLEMENTATION)
  #define LOTUS_DETAIL_C(type, declaration, result) \
    static __inline__ type declaration {            \
      return result;                                \
    }
  #define LOTUS_DETAIL_C_VOID(declaration, unused) \
    static __inline__ void declaration {           \
      unused;                                      \
    }
static const lotus_span lotus_no_span = {0, 0, 0};
#else
  #define LOTUS_DETAIL_C(type, declaration, result) type declaration;
  #define LOTUS_DETAIL_C_VOID(declaration, unused) void declaration;
#endif

/* Starts recording to logs with this prefix, such as "run/lotustrace_log"; NULL: the default, and
 * the environment variable LOTUS_LOG_FILE. Returns 1 if the process is now recording, otherwise 0,
 * after a message with the reason. */
LOTUS_DETAIL_C(int, lotus_start(const char* log_file), ((void)log_file, 1))
/* Ends recording and writes all records to the logs. A program need not call it before it exits. */
LOTUS_DETAIL_C_VOID(lotus_stop(void), (void)0)

/* Begins an operation; lotus_end() ends it. */
LOTUS_DETAIL_C(lotus_span, lotus_begin(lotus_name* name), ((void)name, lotus_no_span))
/* Begins the work of a stage of the pipeline on a batch or item; lotus_end() ends it. */
LOTUS_DETAIL_C(lotus_span, lotus_begin_stage(lotus_name* name, uint64_t number),
               ((void)name, (void)number, lotus_no_span))
/* Begins to build a batch in a worker; lotus_end_batch() ends it, when its number is known. */
LOTUS_DETAIL_C(lotus_span, lotus_begin_batch(void), lotus_no_span)
/* Begins the consumer's wait for a batch; lotus_end_wait() ends it. */
LOTUS_DETAIL_C(lotus_span, lotus_begin_wait(void), lotus_no_span)

/* End a span and record it, on the thread that began it. Afterwards the span may be used for
 * another one. `number` is the batch's number in its epoch; a batch with a number of 2^56 or more
 * is not recorded but counted. */
LOTUS_DETAIL_C_VOID(lotus_end(lotus_span* span), (void)span)
LOTUS_DETAIL_C_VOID(lotus_end_batch(lotus_span* span, uint64_t number), ((void)span, (void)number))
LOTUS_DETAIL_C_VOID(lotus_end_wait(lotus_span* span, uint64_t number), ((void)span, (void)number))
/* Ends a span of any kind without recording it, for example because there are no more data. */
LOTUS_DETAIL_C_VOID(lotus_discard(lotus_span* span), (void)span)

/* Records that the consumer has received this batch and begins to work on it. */
LOTUS_DETAIL_C_VOID(lotus_consumed(uint64_t number), (void)number)
/* Records that an item becomes part of a batch. */
LOTUS_DETAIL_C_VOID(lotus_takes(uint64_t batch, uint64_t item), ((void)batch, (void)item))
/* Names the calling thread, in lotus-tool and for debuggers; of longer names the first 15 bytes
 * count. */
LOTUS_DETAIL_C_VOID(lotus_thread_name(const char* name), (void)name)
/* Sets a counter, such as the depth of a queue, to a value in whatever unit the program uses. */
LOTUS_DETAIL_C_VOID(lotus_count(lotus_name* name, int64_t value), ((void)name, (void)value))

#undef LOTUS_DETAIL_C
#undef LOTUS_DETAIL_C_VOID

#ifdef __cplusplus
}
#endif

#endif /* LOTUS_LOTUS_H */
/* NOLINTEND(modernize-*, hicpp-*, bugprone-macro-parentheses) */
