#!/usr/bin/env bash
# Set-up of the database tests: the system's PostgreSQL server, or Debian's where this may install packages.
set -u
if command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then exit 0; fi
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
  echo "installing PostgreSQL for the database tests"
  # The package would start a server of its own and make a cluster: neither is needed.
  mkdir -p /etc/postgresql-common && echo "create_main_cluster = false" > /etc/postgresql-common/createcluster.conf
  (apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -yq --no-install-recommends postgresql) >/dev/null 2>&1 && exit 0
fi
echo "NO POSTGRESQL: the tests with a server will be skipped. Install it (Debian: apt-get install postgresql) to run them." >&2
