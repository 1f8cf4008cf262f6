#!/usr/bin/env bash
# Set-up of the browser tests: the system's Chromium, or Debian's where this may install packages.
set -u
for name in chromium chromium-browser google-chrome; do
  if command -v "$name" >/dev/null; then exit 0; fi
done
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
  echo "installing Chromium for the browser tests"
  (apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -yq --no-install-recommends chromium) >/dev/null 2>&1 && exit 0
fi
echo "NO CHROMIUM: the browser tests will be skipped. Install it (Debian: apt-get install chromium) to run them." >&2
