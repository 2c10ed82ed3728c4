#!/bin/sh
# Makes the certificates of the tests, which are valid for a hundred years. Keys are for tests alone.
set -eu
cd "$(dirname "$0")"
new() { openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes "$@"; }
names=subjectAltName=DNS:localhost,IP:127.0.0.1
new -x509 -days 36500 -subj "/CN=packfs test authority" -keyout authority.key -out authority.pem
new -subj /CN=localhost -keyout server.key -out request
signed() {
    echo "$2" > extensions
    openssl x509 -req -in request -CA authority.pem -CAkey authority.key -days 36500 -extfile extensions -out "$1"
}
signed server.pem "$names"
signed other.pem subjectAltName=DNS:other.example
for kind in alone:FALSE as-authority:TRUE; do
    openssl req -x509 -key server.key -days 36500 -subj /CN=localhost -addext "$names" \
        -addext "basicConstraints=critical,CA:${kind#*:}" -out "${kind%:*}.pem"
done
rm -f request extensions authority.key authority.srl
