/*
 * The guest's first process: makes a system out of the host's files, runs one command, says how
 * it ended, and switches the guest off. It is a program and not a script because in the guest a
 * fork costs 16 ms and an exec 28 ms: this one forks once.
 *
 * The host writes what is to be done to <run>/spec: fields "key=value", each ended by a NUL:
 *     results=DIR   the one host directory that the guest may write to, bound at its own path
 *     cwd=DIR       where the command starts
 *     start=SECONDS of the guest's monotonic clock before which the command is not started
 *     env=NAME=TEXT one per variable of the command's environment
 *     arg=TEXT      one per word of the command
 * and finds in the same directory what came of it: stdout, stderr, and status. In the latter are
 * the lines "started T", and "exit N T", "signal N T" or "error SENTENCE", T being nanoseconds of
 * the guest's monotonic clock.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* An empty directory that every host has; the guest's own /proc is mounted further down. */
#define BASE "/proc"
#define ROOT BASE "/root"
#define RUN "/run/testbed"

static int status_fd = -1;

static void say(const char *format, ...)
{
	char line[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof line, format, arguments);
	va_end(arguments);
	/* Before the run directory is there, the kernel's console is all we have. */
	dprintf(status_fd >= 0 ? status_fd : STDERR_FILENO, "%s\n", line);
}

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static _Noreturn void power_off(void)
{
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

static void check(int failed, const char *what, const char *where)
{
	if (!failed)
		return;
	say("error cannot %s %s: %s", what, where, strerror(errno));
	power_off();
}

static void mount_at(const char *type, const char *where, const char *options)
{
	mkdir(where, 0755);
	check(mount(type, where, type, 0, options), "mount", where);
}

static void make_directories(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		mkdir(path, 0755);
		*slash = '/';
	}
	mkdir(path, 0755);
}

/*
 * The kernel mounted the host's files read-only at /; writes shall go to memory. Among these
 * files is the host's /proc, which shows the user-mode kernel itself: its working directory is
 * the run directory. The kernel's command line does not name it, because the kernel stirs that
 * line into its random numbers, and two runs shall draw the same ones.
 */
static void enter_overlay(void)
{
	char run[PATH_MAX] = "";

	check(readlink("/proc/self/cwd", run, sizeof run - 1) < 0, "find", "the run directory");
	mount_at("tmpfs", BASE, "mode=0755");
	mkdir(BASE "/upper", 0755);
	mkdir(BASE "/work", 0755);
	mount_at("overlay", ROOT, "lowerdir=/,upperdir=" BASE "/upper,workdir=" BASE "/work");
	mount_at("tmpfs", ROOT "/run", "mode=0755");
	mount_at("hostfs", ROOT RUN, run);
	check(chdir(ROOT), "enter", ROOT);
	check(mount(ROOT, "/", NULL, MS_MOVE, NULL), "move", ROOT);
	check(chroot("."), "change root to", ROOT);
	check(chdir("/"), "enter", "/");
}

static void mount_system(void)
{
	mount_at("proc", "/proc", NULL);
	mount_at("sysfs", "/sys", NULL);
	mount_at("devtmpfs", "/dev", "mode=0755");
	mount_at("devpts", "/dev/pts", "mode=0620,ptmxmode=0666");
	mount_at("tmpfs", "/dev/shm", "mode=1777");
	(void)!symlink("/proc/self/fd", "/dev/fd");
	(void)!symlink("/proc/self/fd/0", "/dev/stdin");
	(void)!symlink("/proc/self/fd/1", "/dev/stdout");
	(void)!symlink("/proc/self/fd/2", "/dev/stderr");
}

static void set_up_kernel(void)
{
	struct ifreq loopback = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	check(fd < 0 || ioctl(fd, SIOCSIFFLAGS, &loopback), "bring up", "lo");
	close(fd);
	check(sethostname("guest", 5), "set", "host name");
}

static int open_output(const char *path)
{
	/* hostfs writes through: the host sees at once what is written here. */
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

	check(fd < 0, "open", path);
	return fd;
}

struct spec {
	char *text, *results, *cwd, **env, **arg;
	int start;
};

static struct spec read_spec(const char *path)
{
	struct spec spec = {.cwd = "/"};
	struct stat size;
	int envs = 0, args = 0, fd = open(path, O_RDONLY);

	check(fd < 0 || fstat(fd, &size) < 0, "open", path);
	spec.text = malloc(size.st_size + 1);
	check(!spec.text || read(fd, spec.text, size.st_size) != size.st_size, "read", path);
	close(fd);
	spec.env = calloc(size.st_size + 1, sizeof *spec.env);
	spec.arg = calloc(size.st_size + 1, sizeof *spec.arg);
	check(!spec.env || !spec.arg, "hold", path);
	for (char *field = spec.text; field < spec.text + size.st_size; field += strlen(field) + 1) {
		char *value = strchr(field, '=') + 1;

		if (!strncmp(field, "results=", 8))
			spec.results = value;
		else if (!strncmp(field, "cwd=", 4))
			spec.cwd = value;
		else if (!strncmp(field, "start=", 6))
			spec.start = atoi(value);
		else if (!strncmp(field, "env=", 4))
			spec.env[envs++] = value;
		else if (!strncmp(field, "arg=", 4))
			spec.arg[args++] = value;
	}
	return spec;
}

static _Noreturn void run_command(const struct spec *spec, int out, int err)
{
	int in = open("/dev/null", O_RDONLY);

	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	setsid();
	if (chdir(spec->cwd) < 0) {
		dprintf(STDERR_FILENO, "cannot enter %s: %s\n", spec->cwd, strerror(errno));
		_exit(126);
	}
	environ = spec->env;
	execvp(spec->arg[0], spec->arg);
	dprintf(STDERR_FILENO, "cannot run %s: %s\n", spec->arg[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

int main(void)
{
	struct spec spec;
	pid_t command, ended;
	long long ended_ns;
	int results, out, err, status;

	enter_overlay();
	status_fd = open_output(RUN "/status");
	mount_system();
	set_up_kernel();
	spec = read_spec(RUN "/spec");
	make_directories(spec.results);
	check(mount("hostfs", spec.results, "hostfs", 0, spec.results), "mount", spec.results);
	results = open(spec.results, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	out = open_output(RUN "/stdout");
	err = open_output(RUN "/stderr");
	/* A fixed instant, whatever the steps above took, so that a run does not depend on its path. */
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &(struct timespec){.tv_sec = spec.start}, NULL);

	say("started %lld", now_ns());
	command = fork();
	check(command < 0, "fork for", spec.arg[0]);
	if (!command)
		run_command(&spec, out, err);
	do
		ended = waitpid(-1, &status, 0);
	while (ended != command);
	ended_ns = now_ns();

	kill(-1, SIGKILL);
	/* Writes have gone to the host already, and failed if its disk is full; mapped pages not. */
	if (results < 0 || syncfs(results))
		say("error cannot write the results to %s: %s", spec.results, strerror(errno));
	else if (WIFSIGNALED(status))
		say("signal %d %lld", WTERMSIG(status), ended_ns);
	else
		say("exit %d %lld", WEXITSTATUS(status), ended_ns);
	power_off();
}
