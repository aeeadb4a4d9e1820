/* A program that ends in a given way: with threads, and with children that are killed. */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t result;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile sig_atomic_t ticks;

static void pause_us(unsigned us) {
  const struct timespec time = {us / 1000000, (long)(us % 1000000) * 1000};
  nanosleep(&time, NULL);
}

static void burn(unsigned rounds) {
  uint64_t x = 1;
  for (unsigned i = 0; i < rounds * 1000; ++i) x = x * 6364136223846793005ULL + 1;
  result += x & 1;
}

/* Burns, sleeps and waits for a lock until the process ends. */
static void* work(void* unused) {
  for (;;) {
    pthread_mutex_lock(&lock);
    burn(20);
    pthread_mutex_unlock(&lock);
    pause_us(500);
  }
  return unused;
}

static void on_tick(int signal) {
  (void)signal;
  ticks = ticks + 1;
}

/* Starts children, kills each second one, and returns a number that depends on how they ended. */
static int children(unsigned count, unsigned seed) {
  int sum = 0;
  for (unsigned i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      burn(50);
      if (i % 2 == 1) pause();
      _exit((int)(seed + i) % 50);
    }
    if (i % 2 == 1) {
      pause_us(seed * 37 % 3000);
      kill(child, SIGKILL);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child) abort();
    sum += WIFEXITED(status) ? WEXITSTATUS(status) : 2 * WTERMSIG(status);
  }
  return sum;
}

int main(int count, char** arguments) {
  if (count < 3) return 2;
  const char* const end = arguments[1];
  const unsigned seed = (unsigned)atoi(arguments[2]);
  if (strcmp(end, "profiled") == 0) {
    struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF};
    const struct itimerspec every = {{0, 1000000}, {0, 1000000}};
    sigaction(SIGPROF, &action, NULL);
    timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer);
    timer_settime(timer, 0, &every, NULL);
    while (ticks < 10) {
      burn(20);
      pause_us(1); /* TSan calls signal handlers only at blocking calls */
    }
    return 11;
  }
  const int sum = children(seed % 4, seed);
  for (unsigned i = 0; i < seed % 3; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL) != 0) return 3;
  }
  pause_us(seed * 7919 % 60000);
  if (strcmp(end, "kill") == 0) raise(SIGKILL);
  if (strcmp(end, "term") == 0) raise(SIGTERM);
  if (strcmp(end, "abort") == 0) abort();
  if (strcmp(end, "segv") == 0) *(volatile int*)8 = 1;
  return sum % 100 + 20;
}
