#!/bin/sh
# An AppImage by appimagetool's line: the image behind a runtime. Checked by `unsquashfs -o`, kernel
# mounts at the offset, and, with RUNTIME (a type-2 runtime), by starting the AppImage itself.
# APPIMAGETOOL: appimagetool, which then makes one, too.
. "$(dirname "$0")/common.sh"
cd "$WORK"

APPDIR=$WORK/App.AppDir
rm -rf "$APPDIR"
mkdir -p "$APPDIR/usr/bin" "$APPDIR/usr/share/doc"
cat > "$APPDIR/AppRun" <<'END'
#!/bin/sh
exec "$(dirname "$0")/usr/bin/app" "$@"
END
printf '#!/bin/sh\necho "app started: $*"\n' > "$APPDIR/usr/bin/app"
chmod 755 "$APPDIR/AppRun" "$APPDIR/usr/bin/app"
printf '[Desktop Entry]\nName=App\nExec=app\nIcon=app\nType=Application\nCategories=Utility;\n' > "$APPDIR/app.desktop"
cp -r "$ORIGINALS" "$APPDIR/usr/share/doc/" 2> /dev/null || true
seq 200000 > "$APPDIR/usr/share/doc/numbers"
find "$APPDIR" -exec touch -h -d @1600000000 {} +

if [ -z "${RUNTIME:-}" ]; then
    # Stands for the runtime: a program of an odd length.
    RUNTIME=$WORK/runtime
    head -c 944632 "$PACKFS" > "$RUNTIME"
    is_runtime=
else
    is_runtime=yes
fi
size=$(stat -c %s "$RUNTIME")
for side in "$NAMES:ours" "$ORIGINALS:theirs"; do
    out=$WORK/${side##*:}.AppImage
    rm -f "$out"
    timed "$out.seconds" "${side%:*}/mksquashfs" "$APPDIR" "$out" -offset "$size" -comp zstd -root-owned -noappend \
        -b 128K -mkfs-time 0 > /dev/null
    dd if="$RUNTIME" of="$out" conv=notrunc status=none
    chmod 755 "$out"
done
walk_at() {
    rm -rf "$WORK/unpacked"
    "$1/unsquashfs" -n -o "$size" -d "$WORK/unpacked" "$2" > /dev/null
    walk "$WORK/unpacked"
    "$WORK/unpacked/AppRun" a b
}
walk_at "$ORIGINALS" "$WORK/ours.AppImage" > "$WORK/1"
walk_at "$NAMES" "$WORK/theirs.AppImage" > "$WORK/2"
cmp "$WORK/1" "$WORK/2"
grep -q 'app started: a b' "$WORK/1"
# A loop device begins at a whole sector, an image behind a runtime need not.
if [ $((size % 512)) = 0 ]; then
    same_images squashfs "$WORK/ours.AppImage" "$WORK/theirs.AppImage" "$size"
fi
mkdir -p "$WORK/at"
for driver in "$NAMES/squashfuse" "$ORIGINALS/squashfuse"; do
    "$driver" -o "offset=$size" "$WORK/ours.AppImage" "$WORK/at"
    "$WORK/at/AppRun" mounted | grep -q 'app started: mounted'
    umount "$WORK/at"
done
if [ "$is_runtime" ]; then
    # The runtime reads the image by itself: mounted, unpacked, and unpacked to be started.
    for side in ours theirs; do
        "$WORK/$side.AppImage" c | grep -q 'app started: c'
        "$WORK/$side.AppImage" --appimage-extract-and-run d | grep -q 'app started: d'
        rm -rf squashfs-root
        "$WORK/$side.AppImage" --appimage-extract > /dev/null
        # The runtime sets no times of directories.
        walk squashfs-root | grep -v '^[^ ]* d ' > "$WORK/$side.extracted"
    done
    cmp "$WORK/ours.extracted" "$WORK/theirs.extracted"
    [ "$("$WORK/ours.AppImage" --appimage-offset)" = "$size" ]
    echo "appimage: started by its runtime from a FUSE mount, unpacked by it and equal"
fi
if [ -n "${APPIMAGETOOL:-}" ]; then
    # appimagetool itself runs the mksquashfs that is first on PATH.
    touch -d @1600000000 "$APPDIR/app.png"
    for side in "$NAMES:ours" "$ORIGINALS:theirs"; do
        out=$WORK/${side##*:}-tool.AppImage
        rm -f "$out"
        PATH=${side%:*}:$PATH ARCH=x86_64 "$APPIMAGETOOL" --runtime-file "$RUNTIME" "$APPDIR" "$out" > "$WORK/log" 2>&1 ||
            { cat "$WORK/log" >&2; exit 1; }
        walk_at "$ORIGINALS" "$out" > "$WORK/${side##*:}.walk"
        [ ! "$is_runtime" ] || "$out" e | grep -q 'app started: e'
    done
    cmp "$WORK/ours.walk" "$WORK/theirs.walk"
    echo "appimage: equal by appimagetool itself; packfs $(stat -c %s "$WORK/ours-tool.AppImage") bytes," \
        "original $(stat -c %s "$WORK/theirs-tool.AppImage") bytes"
fi
echo "appimage: unpacked by both at offset $size and equal, started from both FUSE mounts;" \
    "packfs $(stat -c %s "$WORK/ours.AppImage") bytes, original $(stat -c %s "$WORK/theirs.AppImage") bytes"
