/*
 * Stands between the testbed and the user-mode kernel, on the host, and sees to it that nothing
 * of a guest outlives its owner:
 *     guard RUN CONSOLE KERNEL [ARGUMENT...]
 * starts the kernel in RUN with its output appended to CONSOLE, prints its process id and whether its
 * addresses are "fixed" or "random", and waits.
 * RUN/walls says which of the host's files the guest may use; the host's own kernel sees to that, by
 * Landlock, whatever root does in the guest and even if it takes over the user-mode kernel.
 * Standard input is a pipe that the owner holds open. When that closes, when the owner dies in
 * whatever way, or when a signal says so, the guest is killed, every process of it is reaped, and
 * the directory RUN is removed. When the guest ends by itself, "ended MILLISECONDS" is printed, the
 * CPU time that it used, and RUN is left for the owner to read until it closes the pipe. If the guard
 * itself is killed, the kernel process dies with it (parent-death signal), and with that the guest's.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int remove_entry(const char *path, const struct stat *s, int type, struct FTW *f)
{
	(void)s, (void)type, (void)f;
	return remove(path);
}

/* From <linux/landlock.h>, of which older systems have an older one. */
enum { CREATE_RULESET = 444, ADD_RULE, RESTRICT_SELF };
enum { EXECUTE = 1, READ_FILE = 4, LIST = 8, ALL_OF_FIRST_VERSION = (1 << 13) - 1 };
enum { REFER = 1 << 13, TRUNCATE = 1 << 14, IOCTL_DEV = 1 << 15 };
struct ruleset { uint64_t files, network, scoped; };
struct __attribute__((packed)) beneath { uint64_t allowed; int32_t directory; };

/*
 * Each line of the file is a path after a letter: "w" for what the guest may do anything with, "r"
 * for what it may read and execute, "l" for where it may only list directories. It may use no other
 * file, no TCP, and no socket or signal to reach a process outside. An old host has no Landlock.
 */
static int raise_walls(void)
{
	static const int sizes[] = {0, 8, 8, 8, 16, 16, 24};
	int version = (int)syscall(CREATE_RULESET, NULL, 0, 1);
	struct ruleset all = {.files = ALL_OF_FIRST_VERSION, .network = 3, .scoped = 3};
	FILE *file = fopen("walls", "r");
	char *line = NULL;
	size_t room = 0;
	ssize_t length;
	int rules;

	if (version < 1)
		return 0;
	all.files |= (version > 1 ? REFER : 0) | (version > 2 ? TRUNCATE : 0) | (version > 4 ? IOCTL_DEV : 0);
	rules = (int)syscall(CREATE_RULESET, &all, sizes[version > 6 ? 6 : version], 0);
	if (!file || rules < 0)
		return -1;
	while ((length = getdelim(&line, &room, 0, file)) > 1) {
		struct beneath rule = {.directory = open(line + 1, O_PATH | O_CLOEXEC)};
		struct stat status;

		if (rule.directory < 0) /* not every host has everything */
			continue;
		rule.allowed = *line == 'w' ? all.files : *line == 'r' ? READ_FILE | EXECUTE | LIST : LIST;
		fstat(rule.directory, &status);
		if (!S_ISDIR(status.st_mode))
			rule.allowed &= EXECUTE | READ_FILE | 2 /* write */ | TRUNCATE | IOCTL_DEV;
		if (rule.allowed && syscall(ADD_RULE, rules, 1, &rule, 0) < 0)
			return -1;
		close(rule.directory);
	}
	fclose(file);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return (int)syscall(RESTRICT_SELF, rules, 0);
}

/* Landlock lets everybody change modes, owners, times and attributes of files; this does not. */
static int refuse_changes(void)
{
	static const unsigned calls[] = {
		SYS_chmod, SYS_fchmod, SYS_fchmodat, 452 /* fchmodat2 */,
		SYS_chown, SYS_fchown, SYS_lchown, SYS_fchownat,
		SYS_utime, SYS_utimes, SYS_futimesat, SYS_utimensat,
		SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr, 463 /* setxattrat */,
		SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr, 466 /* removexattrat */,
	};
	enum { CALLS = sizeof calls / sizeof *calls };
	struct sock_filter filter[CALLS + 3] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};

	for (int i = 0; i < CALLS; i++) /* jump to the last instruction, or go on */
		filter[i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], CALLS - i, 0);
	filter[CALLS + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	filter[CALLS + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER,
		     &(struct sock_fprog){.len = CALLS + 3, .filter = filter});
}

static _Noreturn void start_kernel(char **argv, pid_t guard)
{
	struct rlimit files;
	sigset_t none;
	int out = open(argv[2], O_WRONLY | O_CREAT | O_APPEND, 0644), in = open("/dev/null", O_RDONLY);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (out < 0 || chdir(argv[1]) < 0 || getppid() != guard)
		_exit(1);
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	/* The kernel keeps one descriptor for each of the host's files that its guest has read. */
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	if (raise_walls() < 0 || refuse_changes() < 0) {
		perror("guard");
		_exit(126);
	}
	execv(argv[3], argv + 3);
	perror(argv[3]);
	_exit(127);
}

/* The kernel process leads a session of its own: its group is all of the guest. */
static void end_guest(pid_t kernel)
{
	kill(-kernel, SIGKILL);
	kill(kernel, SIGKILL);
	while (waitpid(-1, NULL, __WALL) > 0)
		;
}

/* Of all that was waited for, by us or by one of those. */
static long used_ms(void)
{
	struct rusage used;

	getrusage(RUSAGE_CHILDREN, &used);
	return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000 +
	       (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1000;
}

static int guest_has_ended(pid_t kernel)
{
	siginfo_t info = {0};

	return waitid(P_PID, kernel, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid;
}

int main(int argc, char **argv)
{
	sigset_t signals;
	pid_t kernel, guard = getpid(), owner = getppid();
	int stop = 0, fixed;

	if (argc < 4)
		return 2;
	/*
	 * Where the guest's memory lies decides the order of whatever it keeps by address. Containers
	 * refuse this: podman and Docker allow only some personalities.
	 */
	fixed = personality(ADDR_NO_RANDOMIZE) != -1;
	setsid();
	/* Orphans of the guest become our children, so that we can wait until all are gone. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	struct pollfd watched[] = {
		{.fd = signalfd(-1, &signals, SFD_CLOEXEC), .events = POLLIN},
		{.fd = STDIN_FILENO, .events = POLLIN},
		/* A process forked by the owner may hold the pipe open too; this it cannot. */
		{.fd = (int)syscall(SYS_pidfd_open, owner, 0), .events = POLLIN},
	};

	kernel = fork();
	if (kernel == 0)
		start_kernel(argv, guard);
	if (kernel < 0) { /* and never on: kill(-1) would mean everything that we may kill */
		perror("fork");
		return 1;
	}
	stop = getppid() != owner;
	dprintf(STDOUT_FILENO, "%d %s\n", (int)kernel, fixed ? "fixed" : "random");
	while (!stop && !guest_has_ended(kernel)) {
		struct signalfd_siginfo signal;

		poll(watched, 3, -1);
		if (watched[0].revents && read(watched[0].fd, &signal, sizeof signal) > 0)
			stop = signal.ssi_signo != SIGCHLD;
		stop |= watched[1].revents || watched[2].revents;
	}
	end_guest(kernel);
	dprintf(STDOUT_FILENO, "ended %ld\n", used_ms());
	watched[0].fd = -1;
	if (!stop)
		poll(watched, 3, -1);
	nftw(argv[1], remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}
