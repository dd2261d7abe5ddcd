#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# The control socket answers to what the command would never send, in words, and changes nothing;
# live entries of the lists for a time.

# shellcheck source-path=SCRIPTDIR source=lib.sh disable=SC2317
. "$(dirname "$0")/lib.sh"
# shellcheck source-path=SCRIPTDIR source=weir.sh
. "$(dirname "$0")/weir.sh"

# raw TEXT: what the socket answers to bytes that the command would never send.
raw() {
  printf '%s' "$1" | perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0) or die;
    connect(S, sockaddr_un($ARGV[0])) or die; alarm 10; local $/; syswrite(S, <STDIN>);
    shutdown(S, 1); print <S>' "$WEIR_SOCKET"
}

test_protocol() {
  local command arguments says

  expect_equal "the socket: what is no JSON" "$(raw "what
" | jq -c '[.ok, .code]')" "[false,1]"
  expect_equal "the socket: an unknown command" "$(raw '{"command":"dance"}
' | jq -r .error | cut -c1-23)" "unknown command 'dance'"
  expect_equal "the socket: set without changes" "$(raw '{"command":"set"}
' | jq -c '[.ok, .code]')" "[false,1]"
  expect_equal "the socket: a count out of range" \
    "$(raw '{"command":"top","arguments":{"count":0}}
' | jq -c '[.ok, .code]')" "[false,1]"
  while read -r command arguments says; do
    expect_equal "the socket: $command $arguments" \
      "$(raw "{\"command\":\"$command\",\"arguments\":$arguments}
" | jq -c --arg says "$says" '[.ok, .code, (.error | contains($says)) or .error]')" "[false,1,true]"
  done <<'END'
top {"limit":"nope"} there is no limit 'nope'
suggest {"limit":"nope"} there is no limit 'nope'
show {"what":"nope"} 'nope'
why {} address '': give an IPv4 or IPv6 address
events {"count":0} count: give 1 or more
allow {} action: give add, del or list
deny {"action":"frob"} action: give add, del or list
allow {"action":"add"} allow takes a text 'prefix'
deny {"action":"del","prefix":5} deny takes a text 'prefix'
deny {"action":"add","prefix":"10.0.0.0/99"} '10.0.0.0/99'
deny {"action":"add","prefix":"10.0.0.1","for":600} for: '' is empty
deny {"action":"add","prefix":"10.0.0.1","for":"0s"} from 1s to 366d, or nothing for ever
set {"limit":"per-ip","changes":{"rate":"7pps"},"save":"yes"} save: give true or false
confirm {"undo":1} undo: give true or false
stop {"detach":"true"} detach: give true or false
top {"total":0} total: give true or false
reload {"confirm":"30"} from 1s to 1h
dance {} there are show, set, unset, reload
deny {"action":"add","prefix":"10.0.0.1","for":"1ms"} for: '1ms' is out of range: write 1s to 366d
deny {"action":"add","prefix":"10.0.0.1","confirm":5} confirm: ''
ban {"action":"del"} ban takes an 'action', del, and a text 'key'
set {"limit":"per-ip","changes":{"rate":5}} an object 'changes' of 1 to 32 texts
set {"limit":"per-ip","changes":{"rate":"7pps"},"confirm":"2h"} confirm: '2h' is out of range
set {"limit":"per-ip","changes":{"rate":"7pps"},"session":7} SSH_CONNECTION ''
reload {"confirm":"soon"} confirm: 'soon'
confirm {"undo":true} nothing waits to be confirmed
freeze {} freeze and thaw take a text 'service'
thaw {"service":"web","loop":3} freeze and thaw take a text 'service'
report {"service":"web"} report takes a text 'service', a boolean 'pass'
report {"service":"web","pass":true,"response_ns":0} a number 'response_ns' above 0
END
  expect_equal "none of which has changed anything" \
    "$(json '[.limits[0].settings.rate, .lists.deny.ipv4, .lists.allow.ipv4]' show)" "[1000,0,0]"
}

test_lists() {
  expect_exit "deny for a second: not yet over" 0 "192.0.2.9 added, left: 1s" \
    weir deny add 192.0.2.9 for 1s
  expect_exit "again extends" 0 "left: 10m" weir deny add 192.0.2.9 for 10m
  expect_exit "and never shortens" 0 "left: 10m" weir deny add 192.0.2.9 for 1m
  expect_exit "which the events say too" 0 "deny: 192.0.2.9/32 added for 10m" weir events -n 1
  weir deny del 192.0.2.9 >/dev/null
}

weir_lab 1
write_config 1000pps 1000
start_weir
test_protocol
test_lists
stop weir
finish
