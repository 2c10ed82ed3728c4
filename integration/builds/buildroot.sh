#!/bin/sh
# A root filesystem as Buildroot makes it: a tree of a user, a device table and the lines of
# fs/squashfs/squashfs.mk and fs/erofs/erofs.mk in one session of fakeroot. Booted if a kernel is
# there. Needs busybox (static), fakeroot. MAKEDEVS: Buildroot's makedevs, which then reads the table.
# ORIGINALS is /usr/bin here: fakeroot is not seen by programs with a loader of their own.
ORIGINALS=${ORIGINALS:-/usr/bin}
. "$(dirname "$0")/common.sh"

BUSYBOX=${BUSYBOX:-$(command -v busybox)}
TARGET_DIR=$WORK/target
rm -rf "$TARGET_DIR"
mkdir -p "$TARGET_DIR/bin" "$TARGET_DIR/dev" "$TARGET_DIR/etc" "$TARGET_DIR/proc" "$TARGET_DIR/usr/lib" "$TARGET_DIR/mnt"
cp "$BUSYBOX" "$TARGET_DIR/bin/busybox"
for applet in sh cat id ls stat; do ln -sf busybox "$TARGET_DIR/bin/$applet"; done
echo 'root:x:0:0:root:/:/bin/sh' > "$TARGET_DIR/etc/passwd"
echo 'root:*:::::::' > "$TARGET_DIR/etc/shadow"
head -c 300000 "$BUSYBOX" > "$TARGET_DIR/usr/lib/library"
find "$TARGET_DIR" -exec touch -h -d @1600000000 {} +
chown -R 65534:65534 "$WORK/target"

# The fields of Buildroot's device_table.txt: name, type, mode, uid, gid, major, minor, start, increment, count.
cat > "$WORK/device_table.txt" <<END
/dev         d 755  0 0 - - - - -
/bin/busybox f 4755 0 0 - - - - -
/etc/shadow  f 600  0 0 - - - - -
/etc/passwd  f 644  0 0 - - - - -
/dev/console c 622  0 0 5 1 0 0 -
/dev/null    c 666  0 0 1 3 0 0 -
/dev/tty     c 640  0 0 4 0 0 1 3
/dev/sda     b 640  0 8 8 0 0 0 -
/dev/initctl p 600  0 0 - - - - -
END

# Buildroot's makedevs reads the table inside of fakeroot. Without it the script below does the same.
cat > "$WORK/makedevs.sh" <<'END'
set -e
while read -r name type mode uid gid major minor start increment count; do
    path=$TARGET_DIR$name
    case $type in
        f | d) chown "$uid:$gid" "$path"; chmod "$mode" "$path" ;;
        p) mkfifo "$path"; chown "$uid:$gid" "$path"; chmod "$mode" "$path" ;;
        b | c)
            number=0
            while [ "$number" -lt "$([ "$count" = - ] && echo 1 || echo "$count")" ]; do
                node=$path$([ "$count" = - ] || echo "$((start + number * increment))")
                mknod "$node" "$type" "$major" "$((minor + number * increment))"
                chown "$uid:$gid" "$node"
                chmod "$mode" "$node"
                number=$((number + 1))
            done ;;
    esac
done < "$WORK/device_table.txt"
END

cat > "$WORK/fakeroot.sh" <<'END'
set -e
chown -h -R 0:0 "$TARGET_DIR"
if [ "$MAKEDEVS" ]; then
    "$MAKEDEVS" -d "$WORK/device_table.txt" "$TARGET_DIR"
else
    sh "$WORK/makedevs.sh"
fi
find "$TARGET_DIR" -exec touch -h -d @1600000000 {} +
for side in "$NAMES:ours" "$ORIGINALS:theirs"; do
    tools=${side%:*}
    out=$WORK/${side##*:}
    "$tools/mksquashfs" "$TARGET_DIR" "$out.squashfs" -noappend -processors 2 -b 128K -comp zstd > /dev/null
    "$tools/mkfs.erofs" -zlz4hc,12 -T 1600000000 -U 00000000-0000-0000-0000-000000000000 -C65536 \
        "$out.erofs" "$TARGET_DIR" > /dev/null
done
"$NAMES/unsquashfs" -n -d "$WORK/unpacked" "$WORK/ours.squashfs" > /dev/null
stat -c '%n %t:%T %a %u:%g' "$WORK/unpacked/dev/console"
END
rm -rf "$WORK/unpacked" "$WORK"/ours.* "$WORK"/theirs.*
# The build runs as a user without privileges, in a folder of its own.
chown 65534:65534 "$WORK"
cp "$PACKFS" "$WORK/packfs"
rm -rf "$NAMES"
"$WORK/packfs" install-names "$NAMES" > /dev/null
MAKEDEVS=${MAKEDEVS:-}
export WORK TARGET_DIR NAMES ORIGINALS MAKEDEVS
setpriv --reuid 65534 --regid 65534 --clear-groups fakeroot -- sh "$WORK/fakeroot.sh" > "$WORK/fakeroot.log"
grep -q '5:1 622 0:0' "$WORK/fakeroot.log" || { echo "unsquashfs under fakeroot made no device" >&2; exit 1; }

for format in squashfs erofs; do
    same_images "$format" "$WORK/ours.$format" "$WORK/theirs.$format"
    walk_image "$format" "$WORK/ours.$format" > "$WORK/list"
    for fact in '/dev/console c 0622 0:0' '/dev/tty2 c 0640 0:0' '/dev/sda b 0640 0:8' '/dev/initctl p 0600 0:0' \
        '/bin/busybox f 04755 0:0' '/etc/shadow f 0600 0:0'; do
        grep -qF ".$fact" "$WORK/list" || { echo "missing in $format: $fact" >&2; exit 1; }
    done
    echo "buildroot $format: trees equal on kernel mounts, as the device table has it;" \
        "packfs $(stat -c %s "$WORK/ours.$format") bytes, original $(stat -c %s "$WORK/theirs.$format") bytes"
    boot "$format" "$WORK/ours.$format" 'echo packfs: booted as $(id -u), $(stat -c "%n %a %t:%T" /dev/null)'
done
