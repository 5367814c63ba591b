#!/bin/bash
# A program of a client, in a directory with its files (made by test/run.sh).
#
#   client.sh lacks DIRECTORY    prints what it needs and this machine does not have: modules, jars, a compiler
#   client.sh run DIRECTORY      runs it; PGHOST, PGDATABASE .. say where the server is
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$2"
program=$(echo [Mm]ain.*)
jars=(postgresql bson)
! grep -qs springframework Main.java || jars+=(spring3-{core,beans,jdbc,transaction} commons-logging)

# Prints which commands and files are not there.
missing() {
  for what; do command -v "$what" >/dev/null || [ -e "$what" ] || echo "${what##*/}"; done
}

lacks() {
  case $program in
    *.py)
      /usr/bin/python3 - <<'PY'
import ast, importlib.util
names = []
for node in ast.walk(ast.parse(open('main.py').read())):
    if isinstance(node, ast.Import):
        names += [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        names.append(node.module)
names = {name.split('.')[0] for name in names}
names |= {'bson'} if any(name.startswith('bson_') for name in names) else set()
for name in sorted(names):
    if not importlib.util.find_spec(name):
        print(name)
PY
      # shellcheck disable=SC2046
      missing $(sed -n 's/^# Needs //p' main.py)
      ;;
    *.mjs)
      # shellcheck disable=SC2046
      missing node $(sed -n "s|.* from '\([a-z-]*\)[/'].*|$top/build/node_modules/\1|p" ./*.mjs) ;;
    *.java) missing javac $(printf '/usr/share/java/%s.jar ' "${jars[@]}") ;;
    *.go) missing go /usr/share/gocode/src/{github.com/jackc/pgx/v4,go.mongodb.org/mongo-driver/bson} ;;
  esac
}

run() {
  case $program in
    *.py) exec /usr/bin/python3 main.py ;;
    *.mjs) exec node main.mjs ;;
    *.java)
      # the driver of Java knows no sockets of this kind: a class of ours leads it there
      cp "$top/test/clients/UnixSocket.java" .
      path=$(printf ':/usr/share/java/%s.jar' "${jars[@]}")
      javac -Xlint:all,-path,-processing -cp ".$path" ./*.java
      export DATABASE_URL="jdbc:postgresql://localhost/$PGDATABASE?user=$PGUSER&socketFactory=UnixSocket&socketFactoryArg=$PGHOST/.s.PGSQL.$PGPORT"
      exec java -XX:TieredStopAtLevel=1 -cp ".$path" Main ;;
    *.go)
      export GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE=$top/build/go-cache
      exec go run ./*.go ;;
    *.sh) exec bash -eu main.sh ;;
  esac
}

"$1"
