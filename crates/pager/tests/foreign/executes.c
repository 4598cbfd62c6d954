/* Executes a program in the way that the first argument names: the others are the program and
 * its two arguments. If it starts a process, it ends as that process does. For a failure
 * it prints the error number, and checks that no tracer is attached. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef __GLIBC__
/* musl has it from 1.2.5 on. */
static int execveat_by_number(int folder, const char *path, char **arguments, char **names,
                              int flags) {
    return (int)syscall(SYS_execveat, folder, path, arguments, names, flags);
}
#define execveat execveat_by_number
#endif

extern char **environ;
static char **command;

static int is(const char *way, const char *name) { return strcmp(way, name) == 0; }

static int end_as(pid_t child) {
    int status = 0;
    if (waitpid(child, &status, 0) != child) {
        return 99;
    }
    if (WIFSIGNALED(status)) {
        kill(getpid(), WTERMSIG(status));
    }
    return WEXITSTATUS(status);
}

static void *execute(void *unused) {
    (void)unused;
    execve(command[0], command, environ);
    return NULL;
}

static void say_failure(int error) {
    char line[256];
    printf("error %d\n", error);
    FILE *status = fopen("/proc/thread-self/status", "r");
    while (fgets(line, sizeof line, status)) {
        if (strncmp(line, "TracerPid", 9) == 0) {
            fputs(line, stdout);
        }
    }
}

int main(int count, char **arguments) {
    (void)count;
    const char *way = arguments[1];
    command = arguments + 2;
    char *one = command[0], *two = one ? command[1] : NULL, *three = two ? command[2] : NULL;
    char own[32];
    if (two && is(two, "self")) {
        snprintf(own, sizeof own, "%d", getpid());
        two = command[1] = own;
    }
    pid_t child = -1;
    int error = 0;
    if (is(way, "execve")) {
        execve(one, command, environ);
    } else if (is(way, "execv")) {
        execv(one, command);
    } else if (is(way, "execvp")) {
        execvp(one, command);
    } else if (is(way, "execvpe")) {
        execvpe(one, command, environ);
    } else if (is(way, "execl")) {
        execl(one, one, two, three, "four", "five", "six", "seven", NULL);
    } else if (is(way, "execlp")) {
        execlp(one, one, two, three, NULL);
    } else if (is(way, "execle")) {
        execle(one, one, two, three, "four", "five", NULL, environ);
    } else if (is(way, "fexecve")) {
        fexecve(open(one, O_RDONLY | O_CLOEXEC), command, environ);
    } else if (is(way, "execveat")) {
        execveat(AT_FDCWD, one, command, environ, 0);
    } else if (is(way, "vfork")) {
        child = vfork();
        if (child == 0) {
            execve(one, command, environ);
            _exit(9);
        }
    } else if (is(way, "fork")) {
        child = fork();
        if (child == 0) {
            execv(one, command);
            _exit(9);
        }
    } else if (is(way, "posix_spawn")) {
        error = posix_spawn(&child, one, NULL, NULL, command, environ);
    } else if (is(way, "posix_spawnp")) {
        error = posix_spawnp(&child, one, NULL, NULL, command, environ);
    } else if (is(way, "thread")) {
        pthread_t thread;
        pthread_create(&thread, NULL, execute, NULL);
        pthread_join(thread, NULL);
    }
    if (child > 0) {
        return end_as(child);
    }
    say_failure(error ? error : errno);
    return 5;
}
