/*
 * Lists an image, or prints one of its files.
 *
 *     cc -Wall -Wextra ls.c $(pkg-config --cflags --libs packfs) -o ls
 *     ./ls root.sqfs
 *     ./ls root.sqfs etc/os-release
 */

#include <inttypes.h>
#include <packfs.h>
#include <stdio.h>

static int failed(const char *what)
{
    const char *message;
    int number = packfs_last_error(&message);
    fprintf(stderr, "%s: %s (error %d)\n", what, message, number);
    return 1;
}

static int print_entry(void *context, const char *path, const packfs_metadata *metadata)
{
    uint64_t *bytes = context;
    *bytes += metadata->size;
    printf("%06" PRIo32 " %10" PRIu64 " /%s\n", metadata->mode, metadata->size, path);
    return 0;
}

static int list(const packfs_image *image)
{
    uint64_t bytes = 0;
    if (packfs_walk(image, print_entry, &bytes) < 0)
        return failed("packfs_walk");
    printf("%" PRIu64 " bytes, format %s\n", bytes, packfs_format(image));
    return 0;
}

static int print_file(const packfs_image *image, const char *path)
{
    packfs_file *file;
    if (packfs_file_open(image, path, &file) < 0)
        return failed("packfs_file_open");
    static char buffer[1 << 16];
    uint64_t offset = 0;
    int64_t length;
    while ((length = packfs_file_read(file, offset, buffer, sizeof buffer)) > 0) {
        fwrite(buffer, 1, (size_t)length, stdout);
        offset += (uint64_t)length;
    }
    packfs_file_close(file);
    return length < 0 ? failed("packfs_file_read") : 0;
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: %s IMAGE [FILE]\n", argv[0]);
        return 2;
    }
    packfs_image *image;
    if (packfs_open(argv[1], NULL, &image) < 0)
        return failed("packfs_open");
    for (size_t index = 0; packfs_warning(image, index); index++)
        fprintf(stderr, "warning: %s\n", packfs_warning(image, index));
    int code = argc == 2 ? list(image) : print_file(image, argv[2]);
    packfs_close(image);
    return code;
}
