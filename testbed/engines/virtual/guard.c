/*
 * Stands between the testbed and the user-mode kernel, on the host, and sees to it that nothing
 * of a guest outlives its owner:
 *     guard RUN CONSOLE KERNEL [ARGUMENT...]
 * starts the kernel in RUN with its output appended to CONSOLE, prints its process id, and waits.
 * Standard input is a pipe that the owner holds open. When that closes, when the owner dies in
 * whatever way, or when a signal says so, the guest is killed, every process of it is reaped, and
 * the directory RUN is removed. When the guest ends by itself, "ended STATUS" is printed, and
 * RUN is left for the owner to read until it closes the pipe. If the guard itself is killed, the
 * kernel process dies with it (parent-death signal), and with that the processes that it traces.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int remove_entry(const char *path, const struct stat *s, int type, struct FTW *f)
{
	(void)s, (void)type, (void)f;
	return remove(path);
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
	/* Where the guest's memory lies decides the order of whatever it keeps by address. */
	personality(ADDR_NO_RANDOMIZE);
	execv(argv[3], argv + 3);
	perror(argv[3]);
	_exit(127);
}

/* The kernel process leads a session of its own: its group is all of the guest. */
static int end_guest(pid_t kernel)
{
	int status = -1, one;
	pid_t pid;

	kill(-kernel, SIGKILL);
	kill(kernel, SIGKILL);
	while ((pid = waitpid(-1, &one, __WALL)) > 0)
		if (pid == kernel)
			status = one;
	return status;
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
	int status, stop = 0;

	if (argc < 4)
		return 2;
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
	dprintf(STDOUT_FILENO, "%d\n", (int)kernel);
	while (!stop && !guest_has_ended(kernel)) {
		struct signalfd_siginfo signal;

		poll(watched, 3, -1);
		if (watched[0].revents && read(watched[0].fd, &signal, sizeof signal) > 0)
			stop = signal.ssi_signo != SIGCHLD;
		stop |= watched[1].revents || watched[2].revents;
	}
	status = end_guest(kernel);
	dprintf(STDOUT_FILENO, "ended %d\n", status);
	watched[0].fd = -1;
	if (!stop)
		poll(watched, 3, -1);
	nftw(argv[1], remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	return 0;
}
