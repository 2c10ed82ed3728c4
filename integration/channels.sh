#!/bin/sh
# Packages of all channels for this machine's architecture, from the archives of `cargo xtask dist`.
#
#   integration/channels.sh build [CHANNEL...]   # recipes and packages, in target/dist/CHANNEL
#   integration/channels.sh try [CHANNEL...]     # as root: each from a bare root to its first image; prints a table
#
# Without CHANNEL, channels whose tools or packages are missing are skipped by name. Variables:
#   RELEASE     address of the archives in recipes; default: target/dist
#   HOMEPAGE    address of the project in recipes
#   MAINTAINER  name and address in recipes, as in "NAME <ADDRESS>"
#   GPG_KEY     key that signs repositories of apt and dnf
#   PYTHON      Python with py-rattler-build, and py-rattler to try packages
#   ALPINE      folder of an Alpine root, to try packages; without it, this machine's apk fills an empty folder
#   BREW        checkout of Homebrew/brew that runs with Debian's ruby, to try the formula
set -eu
CHANNELS="debian rpm alpine arch nix conda homebrew container python install"
here=$(cd "$(dirname "$0")" && pwd)
TOP=$(dirname "$here")
DIST=$(realpath "${DIST:-$TOP/target/dist}")
WORK=${WORK:-$TOP/target/channels}
ARCH=$(uname -m)
PYTHON=${PYTHON:-python3}
export LC_ALL=C

field() { sed -n "s/^$1 = \"\(.*\)\"/\1/p" "$2" | head -n 1; }
DESCRIPTION=$(field description "$TOP/crates/cli/Cargo.toml")
LICENSE=$(field license "$TOP/Cargo.toml")
HOMEPAGE=${HOMEPAGE:-$(field repository "$TOP/Cargo.toml")}
HOMEPAGE=${HOMEPAGE:-http://localhost/packfs}
RELEASE=${RELEASE:-file://$DIST}

# archive_of ARCHITECTURE: prints the path of its archive of the form $FORM.
FORM=tar.zst
archive_of() { ls "$DIST"/packfs-*-"$1"-unknown-linux-musl."$FORM"; }
ARCHIVE=$(archive_of "$ARCH")
NAME=$(basename "$ARCHIVE" .tar.zst)
VERSION=${NAME#packfs-}
VERSION=${VERSION%-"$ARCH"-*}

# unpacked ARCHIVE: unpacks it once below $WORK, and prints its folder.
unpacked() {
    tree=$WORK/$(basename "$1" .tar.zst)
    [ "$tree" -nt "$1" ] || { rm -rf "$tree"; tar --zstd -xf "$1" -C "$WORK"; touch "$tree"; }
    echo "$tree"
}

# sum COMMAND...: prints the first word of the output of a command over the archive of $arch, or nothing without it.
sum() { if archive_of "$arch" > /dev/null 2>&1; then "$@" "$(archive_of "$arch")" | cut -d ' ' -f 1; fi; }
nar() { nix-hash --type sha256 --base32 "$(unpacked "$1")"; }

# recipe CHANNEL: copies the recipe to target/dist/CHANNEL/recipe with the values of this release.
recipe() {
    OUT=$DIST/$1
    rm -rf "$OUT"
    mkdir -p "$OUT"
    cp -r "$here/$1" "$OUT/recipe"
    cat > "$WORK/values" <<END
s|@VERSION@|$VERSION|g
s|@DESCRIPTION@|$DESCRIPTION|g
s|@LICENSE@|$LICENSE|g
s|@MAINTAINER@|${MAINTAINER:-packfs <packfs@localhost.localdomain>}|g
s|@HOMEPAGE@|$HOMEPAGE|g
s|@RELEASE@|$RELEASE|g
s|@DATE@|$(date -u -R -r "$ARCHIVE")|g
END
    for arch in x86_64 aarch64; do
        grep -q "@SHA256_$arch@\|@NAR_$arch@" -r "$OUT/recipe" || continue
        archive_of "$arch" > /dev/null 2>&1 || echo "$1: no archive for $arch: the recipe has no checksum for it" >&2
        echo "s|@SHA256_$arch@|$(sum sha256sum)|g"
        grep -q "@NAR_$arch@" -r "$OUT/recipe" && echo "s|@NAR_$arch@|$(sum nar)|g"
    done >> "$WORK/values"
    find "$OUT/recipe" -type f -exec sed -i -f "$WORK/values" {} +
}

# as_user COMMAND...: runs a command that refuses to run as root, which owns $OUT meanwhile.
as_user() {
    [ "$(id -u)" = 0 ] || { "$@"; return; }
    chown -R nobody "$OUT"
    HOME=$OUT setpriv --reuid nobody --clear-groups "$@"
    chown -R root "$OUT"
}

build_debian() {
    recipe debian
    mkdir "$OUT/source"
    cp -r "$OUT/recipe" "$OUT/source/debian"
    (cd "$OUT/source" && PACKFS_TREE=$(unpacked "$ARCHIVE") dpkg-buildpackage -b -d -us -uc)
    rm -r "$OUT/source"
    cd "$OUT"
    apt-ftparchive packages . > Packages
    apt-ftparchive -o APT::FTPArchive::Release::Suite=stable release . > Release
    [ "${GPG_KEY:-}" ] || return 0
    gpg --batch --yes -u "$GPG_KEY" --clearsign -o InRelease Release
    gpg --export "$GPG_KEY" > packfs.gpg
}

build_rpm() {
    recipe rpm
    rpmbuild -bb --quiet --define "_sourcedir $DIST" --define "_rpmdir $OUT" --define "_topdir $WORK/rpmbuild" \
        "$OUT/recipe/packfs.spec"
    # rpm of Debian looks for gpg2.
    if [ "${GPG_KEY:-}" ]; then
        rpmsign --define "_gpg_name $GPG_KEY" --define "__gpg $(command -v gpg)" --addsign "$OUT"/*/*.rpm
        gpg --export -a "$GPG_KEY" > "$OUT/packfs.asc"
    fi
    createrepo_c --quiet "$OUT"
}

# abuild takes archives that it knows by an address of HTTP from SRCDEST.
build_alpine() {
    RELEASE=$(echo "$RELEASE" | sed 's|^file:/*|http://localhost/|')
    export SRCDEST="$DIST" REPODEST="$DIST"
    recipe alpine
    cd "$OUT/recipe"
    abuild -F checksum
    abuild -F -d
    cp "$PACKAGER_PRIVKEY.pub" "$OUT"
}

build_arch() {
    recipe arch
    mkdir "$OUT/build"
    (cd "$OUT/recipe" && as_user env PKGDEST="$OUT" PKGEXT=.pkg.tar.zst SRCDEST="$OUT/build" BUILDDIR="$OUT/build" makepkg)
    rm -r "$OUT/build"
    repo-add --quiet "$OUT/packfs.db.tar.zst" "$OUT"/*.pkg.tar.zst
}

build_nix() { recipe nix; }

build_conda() {
    recipe conda
    "$PYTHON" - "$OUT" <<'END'
import sys, rattler_build
recipe = rattler_build.Stage0Recipe.from_file(sys.argv[1] + "/recipe/recipe.yaml")
tools = rattler_build.ToolConfiguration(test_strategy="native")
recipe.run_build(output_dir=sys.argv[1], tool_config=tools, channels=[])
END
    (cd "$OUT" && rm -rf bld src_cache test .tmp .condapackageignore rattler-build-log.txt)
}

# brew unpacks zstd by a formula of its own, which it would have to fetch first.
build_homebrew() {
    FORM=tar.gz
    recipe homebrew
    ruby -c "$OUT/recipe/packfs.rb"
}

build_container() {
    OUT=$DIST/container
    rm -rf "$OUT" "$WORK/container"
    mkdir -p "$WORK/container"
    cp -r "$(unpacked "$ARCHIVE")" "$WORK/container/usr"
    # What engines mount over: the layer may be the root itself, which is read-only.
    (cd "$WORK/container" && mkdir dev etc mnt proc run sys tmp && chmod 1777 tmp && : > etc/hosts && : > etc/hostname && : > etc/resolv.conf)
    "$WORK/container/usr/bin/packfs" pack -q --owner 0:0 "$WORK/container" "$WORK/container.erofs"
    "$WORK/container/usr/bin/packfs" oci push "$WORK/container.erofs" "oci-layout:$OUT:$VERSION" \
        --entrypoint '["/usr/bin/packfs"]' --label "org.opencontainers.image.description=$DESCRIPTION" \
        --label "org.opencontainers.image.licenses=$LICENSE" --label "org.opencontainers.image.version=$VERSION"
}

build_python() {
    OUT=$DIST/python
    rm -rf "$OUT"
    mkdir -p "$OUT"
    cargo xtask python --wheel --target "$ARCH-unknown-linux-gnu"
    cp "$TOP/target/python/$ARCH-unknown-linux-gnu"/*.whl "$OUT"
}

# `cargo xtask dist --sign` writes the script with the key.
build_install() { [ -e "$DIST/install.sh" ] || cp "$here/install/install.sh" "$DIST"; }

# missing CHANNEL: prints what the verb needs for a channel and the machine lacks.
missing() {
    case $verb:$1 in
    build:debian) set -- dpkg-buildpackage apt-ftparchive ;;
    build:rpm) set -- rpmbuild createrepo_c ;;
    build:alpine) set -- abuild ;;
    build:arch) set -- makepkg repo-add ;;
    build:nix) set -- nix-hash ;;
    build:conda) set -- "$PYTHON" ;;
    build:homebrew) set -- ruby ;;
    build:python) set -- cargo ;;
    build:*) set -- ;;
    try:rpm) set -- mmdebstrap dnf "$DIST/rpm/repodata" ;;
    try:alpine) set -- "${ALPINE:-apk}" "$DIST/alpine" ;;
    try:arch) set -- pacman "$DIST/arch/packfs.db" ;;
    try:homebrew) set -- mmdebstrap "${BREW:-variable-BREW}" "$DIST/homebrew" ;;
    try:container) set -- skopeo umoci runc docker-registry "$PYTHON" "$DIST/container" ;;
    try:install) set -- mmdebstrap "$DIST/install.sh" "$DIST/SHA256SUMS" ;;
    try:*) set -- mmdebstrap "$DIST/$1" ;;
    esac
    for need; do command -v "$need" > /dev/null || [ -e "$need" ] || echo "$need"; done
}

# empty NAME: makes $ROOT a folder for devices, a sample to pack, and packages. Mounts end with the process.
empty() {
    ROOT=$WORK/roots/$1
    rm -rf --one-file-system "$ROOT"
    mkdir -p "$ROOT"
}

# furnish: adds what `empty` names, without a copy of the packages. Nothing in the root has a network.
furnish() {
    mkdir -p "$ROOT/dev" "$ROOT/proc" "$ROOT/mnt" "$ROOT$DIST"
    cp -r "$TOP/docs/guide" "$ROOT/sample"
    mount --rbind /dev "$ROOT/dev"
    mount -t proc proc "$ROOT/proc"
    mount --bind -o ro "$DIST" "$ROOT$DIST"
    PROGRAM=packfs ENTER="unshare --net chroot $ROOT" AT=
}

# bare SUITE [PACKAGES]: makes $ROOT a minimal Debian with apt, from an archive that is made once.
bare() {
    base=$WORK/$(echo "$*" | tr -c 'a-z0-9\n' _).tar
    if [ ! -e "$base" ]; then
        mmdebstrap --quiet --variant=apt ${2:+--include="$2"} "$1" "$base.part.tar"
        mv "$base.part.tar" "$base"
    fi
    empty "$(basename "$base" .tar)"
    tar -xf "$base" -C "$ROOT"
    rm "$ROOT/etc/apt/sources.list"
    furnish
}

run() { $ENTER "$PROGRAM" "$@"; }
mounted() { run mount "$AT/$1" "$AT/mnt"; }

# prove LABEL PACKAGES INSTALL: installs; packs, mounts, and unpacks the sample by the program that is then in $ROOT; prints a
# row of the table.
prove() {
    used() { du -s -x -B 1 --apparent-size --exclude=first.sqfs "$ROOT" | cut -f 1; }
    before=$(used) start=$(date +%s.%N)
    "$3"
    run pack -q "$AT/sample" "$AT/first.sqfs"
    end=$(date +%s.%N) after=$(used)
    run pack -q "$AT/sample" "$AT/second.erofs"
    for pair in first.sqfs:squashfs second.erofs:erofs; do
        image=${pair%:*}
        mounted "$image"
        grep " $ROOT/mnt ${pair#*:} " /proc/mounts
        diff -r "$ROOT/sample" "$ROOT/mnt"
        umount "$ROOT/mnt"
        run unpack -q "$AT/$image" "$AT/unpacked-$image"
        diff -r "$ROOT/sample" "$ROOT/unpacked-$image"
    done
    # shellcheck disable=SC2086 # names of several files
    du -c -b -L $2 | awk -v label="$1" -v start="$start" -v end="$end" -v used="$((after - before))" \
        'END { printf "| %s | %.1f | %.1f | %.1f |\n", label, end - start, $1 / 1e6, used / 1e6 }' >&3
}

try_debian() {
    by_apt() {
        option=trusted=yes
        [ ! -e "$DIST/debian/packfs.gpg" ] || option=signed-by=$DIST/debian/packfs.gpg
        echo "deb [$option] file:$DIST/debian ./" > "$ROOT/etc/apt/sources.list.d/packfs.list"
        $ENTER apt-get -q update
        $ENTER apt-get -q -y install packfs
    }
    for suite in bookworm trixie; do
        bare "$suite"
        prove "\`apt-get install\`, Debian $suite" "$DIST/debian/packfs_*.deb" by_apt
    done
}

try_rpm() {
    by_dnf() {
        check=--nogpgcheck
        [ ! -e "$DIST/rpm/packfs.asc" ] || check=--setopt=packfs.gpgkey=file://$DIST/rpm/packfs.asc
        unshare --net dnf -q -y --installroot "$ROOT" --releasever 1 --repofrompath "packfs,file://$DIST/rpm" --repo packfs \
            --setopt reposdir=/dev/null "$check" install packfs
    }
    empty rpm
    furnish
    prove "\`dnf install\`, empty root" "$DIST/rpm/*/packfs-*.rpm" by_dnf
}

try_alpine() {
    by_apk() {
        cp "$DIST"/alpine/*.rsa.pub "$ROOT/etc/apk/keys"
        $APK add --repositories-file /dev/null --repository "$DIST/alpine" packfs
    }
    empty alpine
    if [ "${ALPINE:-}" ]; then
        cp -a "$ALPINE/." "$ROOT"
        furnish
        APK="$ENTER apk" root="Alpine $(cat "$ALPINE/etc/alpine-release")"
    else
        furnish
        mkdir -p "$ROOT/etc/apk/keys"
        APK="unshare --net apk --root $ROOT --initdb" root="empty root"
    fi
    prove "\`apk add\`, $root" "$DIST/alpine/*/packfs-[0-9]*.apk" by_apk
}

try_arch() {
    by_pacman() {
        mkdir -p "$ROOT/var/lib/pacman"
        printf '[packfs]\nSigLevel = Optional TrustAll\nServer = file://%s/arch\n' "$DIST" > "$WORK/pacman.conf"
        unshare --net pacman --config "$WORK/pacman.conf" --root "$ROOT" --noconfirm -Sy packfs-bin
    }
    empty arch
    furnish
    prove "\`pacman -S\`, empty root" "$DIST/arch/packfs-bin-*.pkg.tar.*" by_pacman
}

try_nix() {
    by_nix() {
        $ENTER nix --extra-experimental-features "nix-command flakes" --option sandbox false --option build-users-group "" \
            profile install "path:$DIST/nix/recipe"
    }
    bare trixie nix-bin
    PROGRAM=/root/.nix-profile/bin/packfs
    prove "\`nix profile install\`, Nix $($ENTER nix --version | sed 's/.* //'), Debian trixie" "$ARCHIVE" by_nix
}

try_conda() {
    by_rattler() {
        unshare --net "$PYTHON" - "file://$DIST/conda" "$ROOT/env" <<'END'
import asyncio, sys, rattler
async def install(channel, prefix):
    await rattler.install(await rattler.solve([channel], ["packfs"]), prefix, show_progress=False)
asyncio.run(install(*sys.argv[1:]))
END
    }
    empty conda
    furnish
    PROGRAM=$ROOT/env/bin/packfs ENTER="unshare --net" AT=$ROOT
    prove "rattler, an empty environment" "$DIST/conda/linux-*/packfs-*" by_rattler
}

try_homebrew() {
    prefix=/home/linuxbrew/.linuxbrew
    by_brew() {
        $ENTER env HOME=/root HOMEBREW_NO_AUTO_UPDATE=1 HOMEBREW_NO_INSTALL_FROM_API=1 \
            "$prefix/bin/brew" install --formula "$DIST/homebrew/recipe/packfs.rb"
    }
    bare trixie ruby,git,curl,zstd,procps,file,patch,bzip2,xz-utils,binutils
    mkdir -p "$ROOT$prefix/bin"
    cp -r "${BREW:?is unset}" "$ROOT$prefix/Homebrew"
    ln -s ../Homebrew/bin/brew "$ROOT$prefix/bin/brew"
    mkdir -p "$ROOT$prefix/Homebrew/Library/Taps/homebrew/homebrew-core/Formula" # empty, instead of a clone
    touch "$ROOT/.dockerenv"                                                      # brew runs as root in containers alone
    # brew demands a compiler for formulas without bottles; this one compiles nothing.
    printf '#!/bin/sh\necho "gcc (Debian) 14.2.0"\n' > "$ROOT/usr/bin/gcc"
    chmod +x "$ROOT/usr/bin/gcc"
    PROGRAM=$prefix/bin/packfs
    prove "\`brew install\`, Homebrew $(git -C "$BREW" describe --tags), Debian trixie" "${ARCHIVE%.zst}.gz" by_brew
}

try_python() {
    by_pip() {
        $ENTER python3 -m venv /venv
        $ENTER /venv/bin/pip install --quiet --no-index "$DIST"/python/*.whl
    }
    bare trixie python3-venv
    PROGRAM=/venv/bin/packfs
    prove "\`pip install\` in a new environment, Debian trixie" "$DIST/python/*.whl" by_pip
}

# The signed script of a release checks its signature by OpenSSL.
try_install() {
    by_script() {
        signature=--no-signature
        [ ! -e "$DIST/SHA256SUMS.minisig" ] || signature=
        # shellcheck disable=SC2086 # none or one word
        $ENTER sh "$DIST/install.sh" --from "$DIST" --to /usr/local/bin $signature
    }
    bare bookworm openssl
    prove "install.sh, Debian bookworm" "${ARCHIVE%.zst}.gz" by_script
}

# The image goes to a registry of the loopback address and back; runc runs it on a mount of its EROFS layer by packfs.
try_container() {
    host=$(unpacked "$ARCHIVE")/bin/packfs
    image=127.0.0.1:5077/packfs:$VERSION
    by_skopeo() {
        skopeo copy --quiet --src-tls-verify=false "docker://$image" "oci:$ROOT/layout:$VERSION"
        umoci raw runtime-config --rootless --image "$ROOT/layout:$VERSION" --rootfs "$WORK/container" "$ROOT/bundle/config.json"
        "$host" mount "oci-layout:$ROOT/layout:$VERSION" "$ROOT/bundle/rootfs"
        cp "$ROOT/bundle/config.json" "$ROOT/config.json"
    }
    # A bundle for each run: the arguments are in the configuration.
    run() {
        "$PYTHON" - "$ROOT" "$@" <<'END'
import json, sys
root, *words = sys.argv[1:]
config = json.load(open(root + "/config.json"))
config["process"]["args"] += words
config["process"]["terminal"] = False
config["root"] = {"path": "rootfs", "readonly": True}
config["mounts"].append({"destination": "/mnt", "type": "bind", "source": root, "options": ["rbind", "rw"]})
json.dump(config, open(root + "/bundle/config.json", "w"))
END
        runc run --bundle "$ROOT/bundle" "packfs-$$"
    }
    mounted() { "$host" mount "$ROOT/$1" "$ROOT/mnt"; }
    empty container
    mkdir -p "$ROOT/bundle/rootfs" "$ROOT/mnt" "$WORK/registry"
    cp -r "$TOP/docs/guide" "$ROOT/sample"
    AT=/mnt
    printf 'version: 0.1\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: 127.0.0.1:5077}\n' "$WORK/registry" > "$WORK/registry.yml"
    docker-registry serve "$WORK/registry.yml" & registry=$!
    trap 'kill $registry; umount "$ROOT/bundle/rootfs"' EXIT
    sleep 1
    "$host" oci pull "oci-layout:$DIST/container:$VERSION" "oci://$image"
    prove "skopeo, umoci, and runc, empty root" "$DIST/container/blobs/sha256/*" by_skopeo
}

[ $# -gt 0 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
verb=$1
shift
mkdir -p "$WORK"
[ "$verb" != try ] || [ "${APART:-}" ] || APART=1 exec unshare --mount --propagation private "$0" "$verb" "$@"
exec 3>&1
trap 'status=$?; [ $status = 0 ] || { tail -n 40 "$log"; echo "error: $verb $channel; $log"; } >&2' EXIT
[ "$verb" = build ] || printf '| channel and root | seconds to the first image | package, MB | installed, MB |\n|---|---:|---:|---:|\n'
for channel in ${*:-$CHANNELS}; do
    log=$WORK/$channel.log
    missing=$(missing "$channel")
    if [ "$missing" ] && [ $# = 0 ]; then
        echo "$channel: skipped: no" $missing >&2
        continue
    fi
    ("${verb}_$channel") > "$log" 2>&1
done
