#!/bin/sh
# Runs @NODE@ of the bus '@BUS@' until it is told to end. Written by `twinlog bundle`.
# The first start formats this node's data directories; one that holds anything is never formatted.
set -eu

fail() {
    echo "error: $1" >&2
    echo "  hint: $2" >&2
    exit 1
}

cd @ROOT@

# Java 17 or newer: JAVA_HOME, then PATH. (Java 8 calls itself 1.8.)
java=
for candidate in "${JAVA_HOME:+$JAVA_HOME/bin/java}" java; do
    if [ -n "$candidate" ] && command -v "$candidate" >/dev/null; then
        version=$("$candidate" -version 2>&1 | sed -n 's/.* version "\(1\.\)\{0,1\}\([0-9][0-9]*\).*/\2/p' | head -n 1)
        if [ "${version:-0}" -ge 17 ]; then
            java=$candidate
            break
        fi
    fi
done
[ -n "$java" ] || fail "Kafka needs Java 17 or newer" "install one, or set JAVA_HOME to it"

# Exactly the jars that the list names, in its order, each one checked.
libs=${TWINLOG_KAFKA_LIBS:-$PWD/libs}
sums=$PWD/jars.sha256
if command -v sha256sum >/dev/null; then check="sha256sum"; else check="shasum -a 256"; fi
[ -d "$libs" ] || fail "there are no jars in $libs" "set TWINLOG_KAFKA_LIBS, or write the bundle with --with-jars"
(cd "$libs" && $check --quiet -c "$sums") >&2 || fail "the jars in $libs are not those of jars.sha256" "copy them again"
CLASSPATH=
while read -r _ jar; do
    CLASSPATH="${CLASSPATH:+$CLASSPATH:}$libs/$jar"
done <"$sums"
export CLASSPATH

# A data directory appears by one rename, so that a format that was interrupted is simply done again.
# Once all are there, an empty one means a volume that is not mounted, or a lost disk.
number=0
while IFS= read -r data; do
    ours=format/$number
    if [ -n "$(ls -A "$data" 2>/dev/null)" ]; then
        for line in $(grep -E '^(cluster|node)\.id=' "$ours/meta.properties"); do
            grep -qxF -- "$line" "$data/meta.properties" 2>/dev/null ||
                fail "$data does not belong to this node" "is it the right directory? ls -la $data"
        done
    elif [ -e formatted ]; then
        fail "$data is empty, and this node had its data there" "is the volume mounted?"
    else
        rm -rf "$data.formatting"
        mkdir -p "$(dirname "$data")"
        cp -R "$ours" "$data.formatting"
        if [ -d "$data" ]; then rmdir "$data"; fi
        mv "$data.formatting" "$data"
    fi
    number=$((number + 1))
done <data.list
touch formatted

mkdir -p log
unset JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS _JAVA_OPTIONS
# shellcheck disable=SC2086  these are lists of options, as in Kafka's own scripts
exec "$java" @jvm.args ${KAFKA_HEAP_OPTS:-} ${KAFKA_JVM_PERFORMANCE_OPTS:-} ${KAFKA_OPTS:-} \
    kafka.Kafka server.properties
