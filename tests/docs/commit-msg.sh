#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The hook for commit messages accepts the good ones and names what is wrong with the others.
set -euo pipefail

hook=$(dirname "${BASH_SOURCE[0]}")/../check/commit-msg
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
body=$'\n\nThe body gives the reason.\n'

# judge MESSAGE: sets $out to what the hook prints and $rc to its exit status
judge()
{
	rc=0
	printf '%s' "$1" >"$dir/message"
	out=$("$hook" "$dir/message" 2>&1) || rc=$?
}

accepts() # MESSAGE
{
	judge "$1"
	[[ $rc -eq 0 && -z $out ]] || {
		printf 'refused: %s\n%s\n' "$1" "$out"
		bad=1
	}
}

# refuses WORDS MESSAGE: with one line, which holds WORDS
refuses()
{
	judge "$2"
	[[ $rc -eq 1 && $out == *"$1"* && $(wc -l <<<"$out") -eq 1 ]] || {
		printf 'expected one line with "%s" (exit status %s): %s\n%s\n' "$1" "$rc" "$2" "$out"
		bad=1
	}
}

accepts "session: split enforcement from accounting$body"
accepts "end reason: name why a session ended the same on both ends$body"
accepts "reddn-wire(7): add the length of a record$body"
accepts "tests: pass each seed on$body"
accepts "softcx: speed up the search for idle pages$body"
accepts "util: one-line the parser"$'\n\nwhy\n\n- and\n- a list; of points.\n'
accepts "costs: need no floating point$body"$'\n# Please enter the commit message\n# On branch main; a comment.\n'
accepts "costs: drop a table$body"$'# ------------------------ >8 ------------------------\ndiff --git a/x b/x\n'
accepts "Merge branch 'softcx'"
accepts "fixup! session: split enforcement from accounting"
accepts "$(printf 'part: %066d' 0 | tr 0 x)$body"

refuses '73 characters' "$(printf 'part: %067d' 0 | tr 0 x)$body"
refuses 'the part' "split enforcement from accounting$body"
refuses 'the part' "session:split enforcement$body"
refuses 'a period' "session: split enforcement from accounting.$body"
refuses 'one thing' "session: split enforcement; rename rates$body"
refuses 'imperative: "splitting"' "session: splitting enforcement$body"
refuses 'imperative: "moved"' "session: moved enforcement$body"
refuses 'imperative: "fixes"' "session: fixes enforcement$body"
refuses 'imperative: "the"' "session: the enforcement is a module$body"
refuses 'imperative: "Split"' "session: Split enforcement$body"
refuses 'not blank' $'session: split enforcement\nbecause it is long\n'
refuses 'body' 'session: split enforcement'
refuses 'body' $'session: split enforcement\n\n# only a comment\n'
refuses 'empty' $'\n# only a comment\n'
exit "$bad"
