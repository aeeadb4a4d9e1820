/* A loader in C: workers build batches of items, a consumer waits for them. Also compiled as C++98.
 * c_program.cmake checks its logs. */
#include <lotus/lotus.h>
#include <stddef.h>

static lotus_name read_name = LOTUS_NAME("Read");
static lotus_name decode_name = LOTUS_NAME("Decode");
static lotus_name built_name = LOTUS_NAME("built");

static void build_batch(uint64_t number) {
  lotus_span batch = lotus_begin_batch();
  uint64_t item;
  for (item = 2 * number; item < 2 * number + 2; ++item) {
    lotus_span stage = lotus_begin_stage(&decode_name, item == 3 ? (uint64_t)1 << 40 : item);
    lotus_span operation = lotus_begin(&read_name);
    lotus_end(&operation);
    lotus_end(&stage);
    lotus_end(&stage); /* ends only once */
    lotus_takes(number, item);
  }
  lotus_end_batch(&batch, number);
  lotus_count(&built_name, (int64_t)number);
}

int main(int argc, char** argv) {
  uint64_t number;
  lotus_span discarded;
  if (!lotus_start(argc > 1 ? argv[1] : NULL)) return 1;
  lotus_thread_name("consumer_in_C_and_more");
  for (number = 0; number < 5; ++number) {
    lotus_span wait = lotus_begin_wait();
    build_batch(number);
    lotus_end_wait(&wait, number);
    lotus_consumed(number);
  }
  discarded = lotus_begin_wait();
  lotus_discard(&discarded);
  discarded = lotus_begin_batch();
  lotus_discard(&discarded);
  discarded = lotus_begin(&read_name);
  lotus_discard(&discarded);
  lotus_end(&discarded);
  lotus_stop();
  lotus_end(&discarded);
  return 0;
}
