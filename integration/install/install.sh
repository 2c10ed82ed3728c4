#!/bin/sh
# Installs packfs, a static program, for one user. It needs neither root nor anything but a shell, the
# basic tools (those of busybox suffice), curl or wget, and minisign or OpenSSL 3 for the signature.
set -eu

# `cargo xtask dist --sign` writes the public key of releases and the address of the repository here.
key=
repository=

usage() {
    cat << 'END'
Usage: install.sh [OPTIONS]

  --to DIR         Folder of the program (default: ~/.local/bin)
  --version V      Version (default: that of the latest release)
  --from PLACE     URL or folder of the release's files
  --key KEY        Public key of minisign: its text, or a file
  --no-signature   Check SHA-256 only, which finds damage but no forgery
END
}

fail() {
    printf 'error: %s\n' "$1" >&2
    [ $# = 1 ] || printf 'hint: %s\n' "$2" >&2
    exit 1
}

has() { command -v "$1" > /dev/null 2>&1; }

# Fetches a file of the release into the folder $work.
fetch() {
    case $from in
        *://*)
            if has curl; then curl -fsSL -o "$work/$1" "$from/$1"
            elif has wget; then wget -q -O "$work/$1" "$from/$1"
            else fail "neither curl nor wget is installed"
            fi ;;
        *) cp "$from/$1" "$work/$1" ;;
    esac || fail "cannot read $from/$1"
}

# Verifies SHA256SUMS with its signature.
verify() {
    [ "$key" ] || fail "this copy of the script has no public key" "--key KEY"
    if has minisign; then
        minisign -V -q -P "$key" -m SHA256SUMS > /dev/null 2>&1
    elif has openssl && openssl version | grep -q '^OpenSSL [3-9]'; then
        verify_by_openssl
    else
        fail "cannot check the signature: neither minisign nor OpenSSL 3 is installed" \
            "install one of them, or give --no-signature"
    fi || fail "SHA256SUMS of $from is not what was signed with key $key"
}

# A signature of minisign is Ed25519 of the BLAKE2b hash, and another one of itself with the comment.
# The key and the signature begin with two letters and the number of the key.
verify_by_openssl() {
    printf '%s' "$key" | openssl base64 -d -A > key
    sed -n 2p SHA256SUMS.minisig | openssl base64 -d -A > signature
    sed -n 4p SHA256SUMS.minisig | openssl base64 -d -A > of-comment
    [ "$(head -c 2 key)$(head -c 2 signature)" = EdED ] || return 1
    head -c 10 key | tail -c 8 > number
    head -c 10 signature | tail -c 8 | cmp -s - number || return 1
    # The head of an Ed25519 key in DER.
    { printf '\060\052\060\005\006\003\053\145\160\003\041\000'; tail -c 32 key; } > key.der
    tail -c 64 signature > of-file
    openssl dgst -blake2b512 -binary SHA256SUMS > hash
    { cat of-file; sed -n '3s/^trusted comment: //p' SHA256SUMS.minisig | tr -d '\n'; } > comment
    is_signed hash of-file && is_signed comment of-comment
}

is_signed() {
    openssl pkeyutl -verify -rawin -pubin -keyform DER -inkey key.der -in "$1" -sigfile "$2" > /dev/null 2>&1
}

main() {
    to=${HOME:-}/.local/bin from='' version='' signature=yes
    while [ $# -gt 0 ]; do
        case $1 in
            --to | --version | --from | --key) [ $# -gt 1 ] || fail "$1 needs a value" ;;
        esac
        case $1 in
            --to) to=$2; shift ;;
            --version) version=${2#v}; shift ;;
            --from) from=${2%/}; shift ;;
            --key) key=$2; shift ;;
            --no-signature) signature=no ;;
            -h | --help) usage; exit ;;
            *) usage >&2; exit 2 ;;
        esac
        shift
    done
    [ "$(uname -s)" = Linux ] || fail "packfs runs on Linux only"
    case $(uname -m) in
        x86_64 | amd64) target=x86_64-unknown-linux-musl ;;
        aarch64 | arm64) target=aarch64-unknown-linux-musl ;;
        armv7* | armv8l) target=armv7-unknown-linux-musleabihf ;;
        riscv64) target=riscv64gc-unknown-linux-musl ;;
        i686) target=i686-unknown-linux-musl ;;
        *) fail "there is no program for $(uname -m)" "cargo install --locked packfs-cli" ;;
    esac
    if [ -z "$from" ]; then
        [ "$repository" ] || fail "this copy of the script names no repository" "--from PLACE"
        from=$repository/releases/latest/download
        [ -z "$version" ] || from=$repository/releases/download/v$version
    fi
    [ ! -f "$key" ] || key=$(sed -n 2p "$key")
    # Both are used from another folder.
    case $to in /*) ;; *) to=$PWD/$to ;; esac
    case $from in /* | *://*) ;; *) from=$PWD/$from ;; esac

    work=$(mktemp -d)
    new=$to/.packfs.$$
    trap 'rm -rf "$work" "$new"' EXIT
    trap 'exit 1' HUP INT TERM
    cd "$work"
    fetch SHA256SUMS
    if [ "$signature" = yes ]; then
        fetch SHA256SUMS.minisig
        verify
    fi
    [ "$version" ] || version=$(sed -n "s/^[0-9a-f]*  packfs-\(.*\)-$target\.tar\.gz\$/\1/p" SHA256SUMS)
    archive=packfs-$version-$target.tar.gz
    grep -x "[0-9a-f]*  $archive" SHA256SUMS > sum || fail "$from has no $archive"
    fetch "$archive"
    sha256sum -c sum > /dev/null 2>&1 || fail "$from/$archive is damaged: its SHA-256 differs"
    gzip -dc "$archive" | tar -xf - "${archive%.tar.gz}/bin/packfs"

    # The program gets its name when it is complete and has run.
    mkdir -p "$to"
    cp "${archive%.tar.gz}/bin/packfs" "$new"
    chmod 755 "$new"
    said=$("$new" --version) || fail "$archive does not run here"
    mv -f "$new" "$to/packfs"
    printf 'installed %s as %s/packfs\n' "$(printf '%s\n' "$said" | head -n 1)" "$to"
    case :$PATH: in *:"$to":*) ;; *) printf 'hint: add %s to PATH\n' "$to" ;; esac
}

# At the end, so that nothing runs before the whole script has been read.
main "$@"
