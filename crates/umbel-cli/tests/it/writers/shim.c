/*
 * Makes system calls of one process fail, as a disk, a signal or a power failure would.
 *
 * Loaded with LD_PRELOAD. Many calls do not go through the C library, so no function is replaced:
 * a seccomp filter sends the calls of interest to a signal handler, which makes them itself or
 * reports a failure. The filter lets the handler's own calls pass, by their address.
 *
 *   UMBEL_FAULT=enospc:N     the N-th call that needs room on the disk fails, and all after it
 *   UMBEL_FAULT=room:BYTES   writes fail once files have grown by so many bytes
 *   UMBEL_FAULT=eio:N        the N-th call on a file fails, once
 *   UMBEL_FAULT=kill:N       the process is killed before the N-th call that changes the disk
 *   UMBEL_FAULT=eintr:N      calls that a signal can interrupt fail, N of N + 1 times
 *   UMBEL_FAULT=short:N      reads and writes transfer only a part, which depends on N
 *   UMBEL_FAULT_LOG=FILE     the name of the first call that failed is written to FILE
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef __x86_64__
#error "the shim is written for x86-64"
#endif

/* The only system call that the filter always allows: it compares the address after it. */
long raw_call(long number, long a, long b, long c, long d, long e, long f);
extern char raw_call_end[];
__asm__(".text\n"
        "raw_call:\n"
        "  mov %rdi, %rax\n"
        "  mov %rsi, %rdi\n"
        "  mov %rdx, %rsi\n"
        "  mov %rcx, %rdx\n"
        "  mov %r8, %r10\n"
        "  mov %r9, %r8\n"
        "  mov 8(%rsp), %r9\n"
        "  syscall\n"
        "raw_call_end:\n"
        "  ret\n");

/* What a call does. */
enum {
  READS = 1,  /* reads from a descriptor */
  WRITES = 2, /* writes bytes to a descriptor */
  GROWS = 4,  /* may need room on the disk */
  CHANGES = 8, /* changes the disk */
  OPENS = 16, /* opens a file; the flags decide whether it changes the disk */
  MAPS = 32,  /* maps a file */
  OTHER = 64, /* anything else that can fail */
  SLOW = 128, /* a signal can interrupt it */
};

static const struct {
  int number, what;
  const char *name;
} CALLS[] = {
    {SYS_read, READS | SLOW, "read"},
    {SYS_pread64, READS | SLOW, "pread64"},
    {SYS_readv, READS | SLOW, "readv"},
    {SYS_write, WRITES | GROWS | CHANGES | SLOW, "write"},
    {SYS_pwrite64, WRITES | GROWS | CHANGES | SLOW, "pwrite64"},
    {SYS_writev, WRITES | GROWS | CHANGES | SLOW, "writev"},
    {SYS_pwritev, WRITES | GROWS | CHANGES | SLOW, "pwritev"},
    {SYS_copy_file_range, GROWS | CHANGES, "copy_file_range"},
    {SYS_sendfile, GROWS | CHANGES, "sendfile"},
    {SYS_fsync, GROWS | CHANGES | SLOW, "fsync"},
    {SYS_fdatasync, GROWS | CHANGES | SLOW, "fdatasync"},
    {SYS_ftruncate, GROWS | CHANGES | SLOW, "ftruncate"},
    {SYS_fallocate, GROWS | CHANGES | SLOW, "fallocate"},
    {SYS_rename, GROWS | CHANGES, "rename"},
    {SYS_renameat, GROWS | CHANGES, "renameat"},
    {SYS_renameat2, GROWS | CHANGES, "renameat2"},
    {SYS_link, GROWS | CHANGES, "link"},
    {SYS_linkat, GROWS | CHANGES, "linkat"},
    {SYS_symlink, GROWS | CHANGES, "symlink"},
    {SYS_symlinkat, GROWS | CHANGES, "symlinkat"},
    {SYS_mkdir, GROWS | CHANGES, "mkdir"},
    {SYS_mkdirat, GROWS | CHANGES, "mkdirat"},
    {SYS_unlink, CHANGES, "unlink"},
    {SYS_unlinkat, CHANGES, "unlinkat"},
    {SYS_rmdir, CHANGES, "rmdir"},
    {SYS_fchmod, CHANGES, "fchmod"},
    {SYS_chmod, CHANGES, "chmod"},
    {SYS_open, OPENS | SLOW, "open"},
    {SYS_openat, OPENS | SLOW, "openat"},
    {SYS_flock, OTHER, "flock"},
    {SYS_mmap, MAPS, "mmap"},
};
enum { COUNT = sizeof CALLS / sizeof *CALLS };

static char mode;         /* the first letter of the mode; `r` for room, `i` for eintr */
static unsigned long nth; /* the number after it */
static const char *log_path;
static atomic_ulong seen, grown;
static atomic_int logged;

static long call3(long number, long a, long b, long c) { return raw_call(number, a, b, c, 0, 0, 0); }

static void report(const char *name) {
  if (!log_path || atomic_exchange(&logged, 1)) return;
  long fd = raw_call(SYS_openat, AT_FDCWD, (long)log_path, O_WRONLY | O_CREAT | O_APPEND, 0644, 0, 0);
  if (fd < 0) return;
  call3(SYS_write, fd, (long)name, (long)strlen(name));
  call3(SYS_close, fd, 0, 0);
}

/* Returns whether a descriptor is a regular file or a directory: neither a pipe, nor a socket, nor a terminal. */
static int is_file(long fd) {
  struct stat found;
  if (call3(SYS_fstat, fd, (long)&found, 0) != 0) return 0;
  return S_ISREG(found.st_mode) || S_ISDIR(found.st_mode);
}

static long made(const long *args, long number) {
  return raw_call(number, args[0], args[1], args[2], args[3], args[4], args[5]);
}

/* Makes a read or write of a part: of the first buffer alone if there are several. */
static long partial(long *args, long number, unsigned long most) {
  if (number == SYS_readv || number == SYS_writev || number == SYS_pwritev) {
    struct iovec first = {0, 0};
    for (long i = 0; i < args[2] && first.iov_len == 0; i++) first = ((struct iovec *)args[1])[i];
    if (first.iov_len > most) first.iov_len = most;
    args[1] = (long)&first, args[2] = 1;
    return made(args, number);
  }
  if ((unsigned long)args[2] > most) args[2] = (long)most;
  return made(args, number);
}

static unsigned long length(const long *args, long number) {
  if (number != SYS_readv && number != SYS_writev && number != SYS_pwritev) return (unsigned long)args[2];
  unsigned long sum = 0;
  for (long i = 0; i < args[2]; i++) sum += ((struct iovec *)args[1])[i].iov_len;
  return sum;
}

static long decide(int call, long *args) {
  long number = CALLS[call].number;
  int what = CALLS[call].what;
  if (what & OPENS) {
    long flags = number == SYS_open ? args[1] : args[2];
    /* The C library opens directories, and does not try again after a signal. */
    if ((flags & O_DIRECTORY) && (flags & O_TMPFILE) != O_TMPFILE) return made(args, number);
    if (flags & (O_CREAT | O_TRUNC) || (flags & O_TMPFILE) == O_TMPFILE) what |= GROWS | CHANGES;
  }
  if (what & MAPS && (args[4] < 0 || args[3] & 0x20 /* MAP_ANONYMOUS */)) return made(args, number);
  if (what & (READS | WRITES)) {
    if (args[0] <= 2 && mode != 's' && mode != 'i') return made(args, number);
    if (mode != 's' && mode != 'i' && !is_file(args[0])) return made(args, number);
  }
  int counts = mode == 'e'   ? what & GROWS
               : mode == 'r' ? what & WRITES
               : mode == 'k' ? what & CHANGES
               : mode == 's' ? what & (READS | WRITES)
               : mode == 'i' ? what & SLOW
                             : 1;
  if (!counts) return made(args, number);
  unsigned long turn = atomic_fetch_add(&seen, 1) + 1;
  switch (mode) {
  case 'e': /* enospc */
    if (turn < nth) return made(args, number);
    report(CALLS[call].name);
    return -ENOSPC;
  case 'r': { /* room */
    unsigned long used = atomic_load(&grown), wanted = length(args, number);
    if (wanted == 0) return made(args, number);
    if (used >= nth) {
      report(CALLS[call].name);
      return -ENOSPC;
    }
    long done = partial(args, number, nth - used);
    if (done > 0) atomic_fetch_add(&grown, (unsigned long)done);
    return done;
  }
  case 'f': /* eio */
    if (turn != nth) return made(args, number);
    report(CALLS[call].name);
    return what & MAPS ? -ENOMEM : -EIO;
  case 'k':
    if (turn != nth) return made(args, number);
    report(CALLS[call].name);
    call3(SYS_kill, call3(SYS_getpid, 0, 0, 0), SIGKILL, 0);
    return -EINTR;
  case 'i': /* eintr */
    if (turn % (nth + 1) == 0) return made(args, number);
    report(CALLS[call].name);
    return -EINTR;
  case 's': { /* short */
    unsigned long wanted = length(args, number);
    if (wanted <= 1) return made(args, number);
    report(CALLS[call].name);
    return partial(args, number, 1 + (turn * 2654435761ul + nth * 40503ul) % wanted);
  }
  }
  return made(args, number);
}

static void handle(int signal, siginfo_t *info, void *context) {
  (void)signal;
  greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
  long args[6] = {registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
                  registers[REG_R10], registers[REG_R8],  registers[REG_R9]};
  for (int call = 0; call < COUNT; call++) {
    if (CALLS[call].number == info->si_syscall) {
      registers[REG_RAX] = decide(call, args);
      return;
    }
  }
  registers[REG_RAX] = -ENOSYS;
}

static void stop(const char *problem) {
  fprintf(stderr, "the shim cannot start: %s\n", problem);
  _exit(98);
}

__attribute__((constructor)) static void start(void) {
  const char *fault = getenv("UMBEL_FAULT");
  if (!fault) return;
  const char *number = strchr(fault, ':');
  if (!number) stop("UMBEL_FAULT has no number");
  if (!strncmp(fault, "eio:", 4)) mode = 'f';
  else if (!strncmp(fault, "eintr:", 6)) mode = 'i';
  else if (strchr("erks", *fault)) mode = *fault;
  else stop("UMBEL_FAULT has an unknown mode");
  nth = strtoul(number + 1, 0, 10);
  log_path = getenv("UMBEL_FAULT_LOG");

  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = handle;
  /* No other signal comes between, and a call in the handler is not trapped. */
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  if (sigaction(SIGSYS, &action, 0)) stop("sigaction");

  struct sock_filter filter[COUNT + 12];
  unsigned long end = (unsigned long)raw_call_end;
  int n = 0;
#define LOAD(field) (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define EQUAL(value, yes, no) (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)(value), yes, no)
  filter[n++] = LOAD(arch);
  filter[n++] = EQUAL(AUDIT_ARCH_X86_64, 0, COUNT + 5);
  filter[n++] = LOAD(instruction_pointer);
  filter[n++] = EQUAL(end, 0, 2);
  filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer) + 4);
  filter[n++] = EQUAL(end >> 32, COUNT + 1, 0);
  filter[n++] = LOAD(nr);
  for (int call = 0; call < COUNT; call++) filter[n++] = EQUAL(CALLS[call].number, COUNT - call, 0);
  filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
  struct sock_fprog program = {(unsigned short)n, filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) stop("PR_SET_NO_NEW_PRIVS");
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) stop("seccomp");
}
