/*
 * Calls every function of libpackfs: with right and wrong arguments, from several threads, and in the child of a fork.
 * Prints nothing unless something fails.
 *
 *     api IMAGE DIGEST      tests with the image that c.rs packs
 *     api --read IMAGE...   reads all of damaged images, whatever they answer
 */

#include <errno.h>
#include <packfs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                              \
    do {                                                                              \
        if (!(condition)) {                                                           \
            const char *text;                                                         \
            int last = packfs_last_error(&text);                                      \
            fprintf(stderr, "%s:%d: %s (last error %d: %s)\n", __FILE__, __LINE__, #condition, last, text); \
            exit(1);                                                                  \
        }                                                                             \
    } while (0)

#define FILES 300
#define THREADS 4

static packfs_image *open_image(const char *place)
{
    packfs_image *image = NULL;
    CHECK(packfs_open(place, NULL, &image) == 0 && image);
    return image;
}

static void test_arguments(const char *place)
{
    packfs_image *image = open_image(place), *none = NULL;
    packfs_dir *dir;
    packfs_file *file;
    packfs_metadata stat;
    packfs_dirent entry;
    char byte;

    CHECK(packfs_open(NULL, NULL, &none) == -EINVAL && packfs_open(place, NULL, NULL) == -EINVAL);
    CHECK(packfs_format(NULL) == NULL && packfs_warning(NULL, 0) == NULL);
    CHECK(packfs_stat(NULL, "", 0, &stat) == -EINVAL && packfs_stat(image, NULL, 0, &stat) == -EINVAL);
    CHECK(packfs_stat(image, "", 0, NULL) == -EINVAL && packfs_stat(image, "", 8, &stat) == -EINVAL);
    CHECK(packfs_opendir(image, "", NULL) == -EINVAL && packfs_opendir(NULL, "", &dir) == -EINVAL);
    CHECK(packfs_readdir(NULL, &entry) == -EINVAL);
    CHECK(packfs_walk(image, NULL, NULL) == -EINVAL);
    CHECK(packfs_file_open(image, NULL, &file) == -EINVAL && packfs_file_open(image, "hello", NULL) == -EINVAL);
    CHECK(packfs_file_read(NULL, 0, &byte, 1) == -EINVAL);
    CHECK(packfs_read_many(image, NULL, 1) == -EINVAL && packfs_read_many(image, NULL, 0) == 0);
    CHECK(packfs_readlink(image, "link", NULL, 1) == -EINVAL);
    CHECK(packfs_getxattr(image, "hello", 0, NULL, NULL, 0) == -EINVAL);
    CHECK(packfs_listxattr(NULL, "hello", 0, NULL, 0) == -EINVAL);
    CHECK(packfs_check(NULL, 0, NULL, NULL) == -EINVAL && packfs_check(image, 64, NULL, NULL) == -EINVAL);
    CHECK(packfs_digest(NULL, &byte, 1) == -EINVAL && packfs_digest(image, &byte, 1) == -ERANGE);
    CHECK(packfs_last_error(NULL) == ERANGE);
    CHECK(packfs_stat(image, "../hello", 0, &stat) == -EINVAL);

    packfs_open_options options = {.size = sizeof options, .threads = 1, .cache_bytes = 1 << 20};
    CHECK(packfs_open(place, &options, &none) == 0);
    packfs_close(none);
    options.size = 8;
    CHECK(packfs_open(place, &options, &none) == -EINVAL);
    options.size = sizeof options;
    options.flags = 1;
    CHECK(packfs_open(place, &options, &none) == -EINVAL);
    options = (packfs_open_options){.size = sizeof options, .offset = 1};
    CHECK(packfs_open(place, &options, &none) == -EOPNOTSUPP);
    const char *message;
    CHECK(packfs_last_error(&message) == EOPNOTSUPP && !strstr(message, "--"));
    const char *devices[] = {"/nonexistent/device", NULL};
    options = (packfs_open_options){.size = sizeof options, .flags = PACKFS_NO_JOURNAL};
    CHECK(packfs_open(place, &options, &none) == -EINVAL && packfs_last_error(&message) == EINVAL);
    CHECK(strstr(message, "has no journal"));
    options = (packfs_open_options){.size = sizeof options, .partition_table = "gpt"};
    CHECK(packfs_open(place, &options, &none) == -EUCLEAN);
    options.partition_table = "bsd";
    CHECK(packfs_open(place, &options, &none) == -EINVAL);
    options = (packfs_open_options){.size = sizeof options, .devices = devices};
    CHECK(packfs_open(place, &options, &none) < 0);
    options = (packfs_open_options){.size = sizeof options};
    CHECK(packfs_options_set(&options, "no-journal", "on") == 0);
    CHECK(packfs_open(place, &options, &none) == -EINVAL && packfs_last_error(&message) == EINVAL);
    CHECK(strstr(message, "has no journal"));
    CHECK(packfs_options_set(&options, "no-journal", "off") == 0);
    CHECK(packfs_options_set(&options, "offset", "0x") == -EINVAL && packfs_last_error(&message) == EINVAL);
    CHECK(strstr(message, "offset=0x") && strstr(message, "not a size"));
    CHECK(packfs_options_set(&options, "colour", "red") == -EINVAL && packfs_last_error(&message) == EINVAL);
    CHECK(strstr(message, "colour") && strstr(message, "snapshot"));
    CHECK(packfs_options_set(&options, NULL, "on") == -EINVAL && packfs_options_set(NULL, "offset", "0") == -EINVAL);
    CHECK(packfs_open(place, &options, &none) == 0);
    packfs_close(none);
    packfs_options_free(&options);
    CHECK(!options.named);
    options.size = offsetof(packfs_open_options, named);
    CHECK(packfs_options_set(&options, "offset", "0") == -EINVAL);
    options = (packfs_open_options){.size = sizeof options, .devices = devices};
    /* The options of the first version, whatever lies behind them. */
    options.size = offsetof(packfs_open_options, devices);
    CHECK(packfs_open(place, &options, &none) == 0);
    packfs_close(none);
    struct {
        packfs_open_options known;
        uint64_t further;
    } later = {{.size = sizeof later}, 0};
    CHECK(packfs_open(place, &later.known, &none) == 0);
    packfs_close(none);
    later.further = 1;
    CHECK(packfs_open(place, &later.known, &none) == -EINVAL);

    packfs_close(NULL);
    packfs_closedir(NULL);
    packfs_file_close(NULL);
    packfs_close(image);
}

static void test_metadata(const char *place)
{
    packfs_image *image = open_image(place);
    packfs_metadata stat, link;
    const char *message;

    CHECK(strcmp(packfs_format(image), "squashfs") == 0 || strcmp(packfs_format(image), "erofs") == 0);
    CHECK(packfs_stat(image, "hello", 0, &stat) == 0);
    CHECK(S_ISREG(stat.mode) && (stat.mode & 07777) == 0640 && stat.size == 6 && stat.mtime == 1234567890);
    CHECK(packfs_stat(image, "/link", 0, &link) == 0 && link.id == stat.id);
    CHECK(packfs_stat(image, "link", PACKFS_NOFOLLOW, &link) == 0 && S_ISLNK(link.mode) && link.size == 0);
    CHECK(packfs_stat(image, "none", 0, &stat) == -ENOENT);
    CHECK(packfs_last_error(&message) == ENOENT && strstr(message, "none"));
    CHECK(packfs_stat(image, "hello/x", 0, &stat) == -ENOTDIR);
    CHECK(packfs_stat(image, "loop", 0, &stat) == -ELOOP);

    char target[16];
    CHECK(packfs_readlink(image, "link", NULL, 0) == 5 && packfs_readlink(image, "link", target, 5) == -ERANGE);
    CHECK(packfs_readlink(image, "link", target, 6) == 5 && strcmp(target, "hello") == 0);
    CHECK(packfs_readlink(image, "hello", target, 6) == -EINVAL);

    char value[64];
    CHECK(packfs_listxattr(image, "hello", 0, NULL, 0) == 10);
    CHECK(packfs_listxattr(image, "link", 0, value, sizeof value) == 10 && strcmp(value, "user.name") == 0);
    CHECK(packfs_getxattr(image, "hello", 0, "user.name", value, sizeof value) == 3 && !memcmp(value, "a\0b", 3));
    CHECK(packfs_getxattr(image, "hello", 0, "user.name", value, 2) == -ERANGE);
    CHECK(packfs_getxattr(image, "hello", 0, "user.other", value, 2) == -ENODATA);
    CHECK(packfs_listxattr(image, "link", PACKFS_NOFOLLOW, value, sizeof value) == 0);
    packfs_close(image);
}

static void test_directories(const char *place)
{
    packfs_image *image = open_image(place);
    packfs_dir *dir;
    packfs_dirent entry;
    char seen[FILES] = {0};
    int result, count = 0;

    CHECK(packfs_opendir(image, "hello", &dir) == -ENOTDIR);
    CHECK(packfs_opendir(image, "many", &dir) == 0);
    packfs_close(image);
    while ((result = packfs_readdir(dir, &entry)) > 0) {
        int number = atoi(entry.name);
        CHECK(number < FILES && !seen[number] && S_ISREG(entry.mode));
        seen[number] = 1;
        count++;
    }
    CHECK(result == 0 && count == FILES && packfs_readdir(dir, &entry) == 0);
    packfs_closedir(dir);
}

static int count_entry(void *context, const char *path, const packfs_metadata *metadata)
{
    int *count = context;
    if (*count == 0)
        CHECK(strcmp(path, "") == 0 && S_ISDIR(metadata->mode));
    ++*count;
    return 0;
}

static int stop(void *context, const char *path, const packfs_metadata *metadata)
{
    (void)metadata;
    ++*(int *)context;
    return *path ? 42 : 0;
}

static void fail_finding(void *context, int severity, const char *place, const char *fault)
{
    (void)context;
    fprintf(stderr, "%s: %s\n", place, fault);
    CHECK(severity < 2);
}

static void measure_finding(void *context, int severity, const char *place, const char *fault)
{
    *(size_t *)context += strlen(place) + strlen(fault) + (size_t)severity;
}

static void test_whole(const char *place, const char *digest)
{
    packfs_image *image = open_image(place);
    char text[PACKFS_DIGEST_SIZE];
    int count = 0;

    CHECK(packfs_walk(image, count_entry, &count) == 0 && count == FILES + 6);
    count = 0;
    CHECK(packfs_walk(image, stop, &count) == 42 && count == 2);
    CHECK(packfs_digest(image, text, sizeof text) == (int64_t)strlen(digest) && strcmp(text, digest) == 0);
    CHECK(packfs_check(image, PACKFS_CHECK_DATA, fail_finding, NULL) == 0);
    packfs_close(image);
    CHECK(strlen(packfs_version()) > 0);
}

/* File number N has 100 * N times the byte 'a' + N % 26. */
static size_t size_of(int number)
{
    return (size_t)number * 100;
}

static void test_read(packfs_image *image)
{
    packfs_file *file;
    char buffer[64];

    CHECK(packfs_file_open(image, "many", &file) == -EISDIR);
    CHECK(packfs_file_open(image, "link", &file) == 0);
    CHECK(packfs_file_read(file, 0, buffer, sizeof buffer) == 6 && !memcmp(buffer, "hello\n", 6));
    CHECK(packfs_file_read(file, 4, buffer, 1) == 1 && buffer[0] == 'o');
    CHECK(packfs_file_read(file, 6, buffer, 1) == 0 && packfs_file_read(file, UINT64_MAX, buffer, 9) == 0);
    CHECK(packfs_file_read(file, 0, NULL, 0) == 0 && packfs_file_read(file, 0, NULL, 1) == -EINVAL);
    CHECK(packfs_file_read(file, 0, buffer, SIZE_MAX) == -EINVAL);
    packfs_file_close(file);
}

static void test_read_many(packfs_image *image)
{
    packfs_read_request requests[FILES + 2];
    char path[FILES][16], *memory[FILES], spare[2];
    for (int number = 0; number < FILES; number++) {
        snprintf(path[number], sizeof path[number], "many/%d", number);
        memory[number] = malloc(size_of(number) + 1);
        CHECK(memory[number]);
        requests[number] = (packfs_read_request){path[number], 0, memory[number], size_of(number) + 1, 77};
    }
    requests[9].offset = 800;
    requests[FILES] = (packfs_read_request){"none", 0, spare, 1, 77};
    requests[FILES + 1] = (packfs_read_request){NULL, 0, spare + 1, 1, 77};
    CHECK(packfs_read_many(image, requests, FILES + 2) == 2 && packfs_last_error(NULL) == ENOENT);
    CHECK(requests[FILES].result == -ENOENT && requests[FILES + 1].result == -EINVAL);
    for (int number = 0; number < FILES; number++) {
        size_t size = number == 9 ? 100 : size_of(number);
        CHECK(requests[number].result == (int64_t)size);
        for (size_t at = 0; at < size; at++)
            CHECK(memory[number][at] == 'a' + number % 26);
    }
    requests[1].buffer = requests[2].buffer;
    CHECK(packfs_read_many(image, requests, FILES) == -EINVAL);
    for (int number = 0; number < FILES; number++)
        free(memory[number]);
}

static void *read_on_thread(void *image)
{
    for (int round = 0; round < 3; round++) {
        test_read(image);
        test_read_many(image);
    }
    return NULL;
}

static void test_threads(const char *place)
{
    packfs_image *image = open_image(place);
    pthread_t threads[THREADS];
    for (int number = 0; number < THREADS; number++)
        CHECK(pthread_create(&threads[number], NULL, read_on_thread, image) == 0);
    for (int number = 0; number < THREADS; number++)
        CHECK(pthread_join(threads[number], NULL) == 0);
    packfs_close(image);
}

static void test_fork(const char *place)
{
    packfs_image *image = open_image(place);
    packfs_metadata stat;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        int code = packfs_stat(image, "hello", 0, &stat) == -ECHILD ? 0 : 1;
        packfs_close(image);
        packfs_image *again = NULL;
        if (packfs_open(place, NULL, &again) != 0 || packfs_stat(again, "hello", 0, &stat) != 0)
            code = 2;
        /* Not an end of this program, at which valgrind takes what the parent's threads hold for lost. */
        if (code == 0)
            execlp("true", "true", (char *)NULL);
        _exit(code);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(packfs_stat(image, "hello", 0, &stat) == 0);
    packfs_close(image);
}

static int read_entry(void *context, const char *path, const packfs_metadata *metadata)
{
    packfs_image *image = context;
    char buffer[4096];
    packfs_file *file;
    if (S_ISREG(metadata->mode) && packfs_file_open(image, path, &file) == 0) {
        uint64_t offset = 0;
        int64_t length;
        while (offset < 1 << 20 && (length = packfs_file_read(file, offset, buffer, sizeof buffer)) > 0)
            offset += (uint64_t)length;
        packfs_file_close(file);
    }
    packfs_dir *dir;
    if (S_ISDIR(metadata->mode) && packfs_opendir(image, path, &dir) == 0) {
        packfs_dirent entry;
        while (packfs_readdir(dir, &entry) > 0)
            CHECK(memchr(entry.name, 0, sizeof entry.name));
        packfs_closedir(dir);
    }
    packfs_readlink(image, path, buffer, sizeof buffer);
    packfs_listxattr(image, path, PACKFS_NOFOLLOW, buffer, sizeof buffer);
    packfs_read_request request = {path, 0, buffer, sizeof buffer, 0};
    packfs_read_many(image, &request, 1);
    return 0;
}

static void read_all(const char *place)
{
    packfs_open_options options = {.size = sizeof options, .flags = PACKFS_IGNORE_CHECKSUM};
    packfs_image *image;
    char digest[PACKFS_DIGEST_SIZE];
    size_t length = 0;
    if (packfs_open(place, &options, &image) < 0)
        return;
    packfs_walk(image, read_entry, image);
    packfs_check(image, PACKFS_CHECK_DATA, measure_finding, &length);
    packfs_digest(image, digest, sizeof digest);
    packfs_close(image);
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "--read") == 0) {
        for (int number = 2; number < argc; number++)
            read_all(argv[number]);
        return 0;
    }
    CHECK(argc == 3);
    test_arguments(argv[1]);
    test_metadata(argv[1]);
    test_directories(argv[1]);
    test_whole(argv[1], argv[2]);
    test_threads(argv[1]);
    test_fork(argv[1]);
    return 0;
}
