# Parts of the builds in this folder; sourced, not run. Needs root.
#
# PACKFS     the program to test
# ORIGINALS  a folder with mksquashfs, unsquashfs, mkfs.erofs, fsck.erofs
# KERNEL     a folder with vmlinuz and an initramfs with busybox and modules, for the builds that boot
# WORK       a folder for the build; what is there already is used again

set -eu
here=$(cd "$(dirname "$0")" && pwd)
target=$here/../../target
PACKFS=$(realpath "${PACKFS:-$target/release/packfs}")
ORIGINALS=$(realpath "${ORIGINALS:-$target/peers/bin}")
KERNEL=${KERNEL:-$target/kernels/6.1}
WORK=${WORK:-$target/builds/$(basename "$0" .sh)}
mkdir -p "$WORK"
WORK=$(realpath "$WORK")
[ "$(id -u)" = 0 ] || { echo "$0: mounts need root" >&2; exit 2; }

# The names of packfs, in a folder of their own.
NAMES=$WORK/names
rm -rf "$NAMES"
"$PACKFS" install-names "$NAMES" > /dev/null

# Every fact of a mounted or unpacked tree that a walk shows, but the sizes of directories.
walk() {
    (cd "$1" && find . ! -type d -printf '%p %y %#m %U:%G %s %T@ %n %l\n' -o -printf '%p %y %#m %U:%G %T@\n' | sort
        find . -type f -exec sha256sum {} + | sort -k 2
        find . \( -type b -o -type c \) -exec stat -c '%n %t %T' {} + | sort)
}

# walk_image FORMAT IMAGE [OFFSET]: the walk of an image that the kernel mounts.
walk_image() {
    at=$(mktemp -d)
    mount -t "$1" -o "loop,ro,offset=${3:-0}" "$2" "$at"
    walk "$at"
    umount "$at"
    rmdir "$at"
}

# same_images FORMAT OURS THEIRS [OFFSET]
same_images() {
    walk_image "$1" "$2" "${4:-0}" > "$WORK/ours.walk"
    walk_image "$1" "$3" "${4:-0}" > "$WORK/theirs.walk"
    if ! diff "$WORK/ours.walk" "$WORK/theirs.walk" > "$WORK/walk.diff"; then
        echo "trees differ: $2 $3" >&2
        head -20 "$WORK/walk.diff" >&2
        return 1
    fi
}

# timed FILE COMMAND...: runs a command, and writes its seconds to a file.
timed() {
    file=$1
    shift
    start=$(date +%s.%N)
    "$@" || return
    date +%s.%N | awk -v start="$start" '{ printf "%.2f\n", $1 - start }' > "$file"
}

# told NAME OURS THEIRS [TEXT]: a line of results; seconds are those of timed.
told() {
    printf '%s: trees equal on kernel mounts; packfs %s bytes in %s s, original %s bytes in %s s%s\n' "$1" \
        "$(stat -c %s "$2")" "$(cat "$2.seconds")" "$(stat -c %s "$3")" "$(cat "$3.seconds")" "${4:-}"
}

# small_root DIR: makes a tree that boots, of a static busybox (BUSYBOX).
small_root() {
    mkdir -p "$1/usr/bin" "$1/usr/lib" "$1/etc" "$1/dev" "$1/proc"
    cp "${BUSYBOX:-$(command -v busybox)}" "$1/usr/bin/busybox"
    for applet in sh cat id ls wc; do ln -s busybox "$1/usr/bin/$applet"; done
    ln -s usr/bin "$1/bin"
    printf 'ID=example\n' > "$1/usr/lib/os-release"
    ln -s ../usr/lib/os-release "$1/etc/os-release"
    seq 100000 > "$1/etc/numbers"
    find "$1" -exec touch -h -d @1600000000 {} +
}

# root_partition FORMAT FOLDER: the definition of a root for systemd-repart.
root_partition() {
    printf '[Partition]\nType=root\nFormat=%s\nCopyFiles=%s:/\nMinimize=best\n' "$1" "$2"
}

# same_disks NAME FORMAT: compares and boots the only partition of ours.raw and theirs.raw.
same_disks() {
    for side in ours theirs; do
        set -- "$1" "$2" $(partx --show --noheadings --output START,SECTORS "$WORK/$side.raw")
        dd if="$WORK/$side.raw" of="$WORK/$side.$2" bs=512 skip="$3" count="$4" status=none
    done
    same_images "$2" "$WORK/ours.$2" "$WORK/theirs.$2"
    told "$1 $2, disk" "$WORK/ours.raw" "$WORK/theirs.raw"
    boot "$2" "$WORK/ours.$2" 'echo packfs: booted as $(id -u), $(ls / | wc -l) entries'
}

# boot FORMAT IMAGE COMMAND: starts a virtual machine whose root is the image, and runs a command as
# its first process. Prints what the command prints behind "packfs: ".
boot() {
    if [ ! -e "$KERNEL/vmlinuz" ] || ! command -v qemu-system-x86_64 > /dev/null; then
        echo "no kernel in $KERNEL or no qemu-system-x86_64: not booted" >&2
        return 1
    fi
    rm -rf "$WORK/init"
    mkdir "$WORK/init"
    cat > "$WORK/init/init" <<END
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t devtmpfs dev /dev
for round in 1 2 3 4 5; do
    for module in /modules/*.ko; do insmod \$module 2>/dev/null; done
done
mount -t $1 -o ro /dev/vda /mnt && mount --move /proc /mnt/proc && mount --move /dev/ /mnt/dev
exec switch_root /mnt /bin/sh -c '$3; echo o > /proc/sysrq-trigger; while :; do :; done'
END
    chmod 755 "$WORK/init/init"
    (cd "$WORK/init" && echo init | cpio --quiet -o -H newc) > "$WORK/init.cpio"
    # The kernel unpacks both archives; the second one replaces /init.
    cat "$KERNEL/initramfs" "$WORK/init.cpio" > "$WORK/initramfs"
    # A drive has whole sectors.
    cp "$2" "$WORK/drive"
    truncate -s %4096 "$WORK/drive"
    timeout 300 qemu-system-x86_64 -nodefaults -no-reboot -display none -serial stdio -m 512 -accel tcg -cpu max \
        -kernel "$KERNEL/vmlinuz" -initrd "$WORK/initramfs" -append "console=ttyS0 quiet panic=-1 no_timer_check" \
        -drive "file=$WORK/drive,format=raw,if=virtio,readonly=on" < /dev/null > "$WORK/boot.log" 2>&1 || true
    tr -d '\r' < "$WORK/boot.log" | grep '^packfs: '
}
