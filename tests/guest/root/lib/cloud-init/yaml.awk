# Flattens YAML, and so JSON: one line per scalar, its path, a tab, its value. In values, backslashes, tabs and
# newlines are escaped for printf's %b. Knows what cloud-init documents use: block and flow collections, plain,
# quoted and block scalars, comments. Anything else ends it with a message and status 1.

{ sub(/\r$/, ""); L[++n] = $0 }

END {
    i = 1
    block("", 0)
    skip()
    if (i <= n) fail("something else than expected")
}

function fail(why) {
    print "line " i ": " why >"/dev/stderr"
    failed = 1
    exit 1
}

function emit(path, value) {
    gsub(/\\/, "\\\\&", value)
    gsub(/\t/, "\\t", value)
    gsub(/\n/, "\\n", value)
    print substr(path, 2) "\t" value
}

function indent(line) { match(line, /^ */); return RLENGTH }

function blank(line) { return line ~ /^[ \t]*(#.*)?$/ }

function skip() {
    while (i <= n && (blank(L[i]) || L[i] ~ /^(---|\.\.\.)[ ]*(#.*)?$/)) i++
}

function spaces(count) { return sprintf("%" count "s", "") }

# The length of `key:` at the start of the text, or 0. Sets KEY.
function key(text,   at) {
    if (match(text, /^"[^"]*"[ ]*:([ \t]|$)/) || match(text, /^'[^']*'[ ]*:([ \t]|$)/)) {
        at = RLENGTH
        KEY = substr(text, 2)
        KEY = substr(KEY, 1, index(KEY, substr(text, 1, 1)) - 1)
        return at
    }
    if (text ~ /^[["'{|>#%@`&*!]/) return 0
    if (!match(text, /:([ \t]|$)/)) return 0
    at = RSTART
    KEY = substr(text, 1, at - 1)
    if (KEY ~ /[ \t]#/) return 0
    sub(/[ \t]+$/, "", KEY)
    return at
}

# Whatever starts at the next line, if it is indented enough.
function block(path, least,   at, text) {
    skip()
    if (i > n) return
    at = indent(L[i])
    if (at < least) { emit(path, ""); return }
    text = substr(L[i], at + 1)
    if (text ~ /^\t/) fail("a tab in the indentation")
    if (text ~ /^-([ \t]|$)/) sequence(path, at)
    else if (key(text)) mapping(path, at)
    else node(path, least - 1, text)
}

function sequence(path, at,   count, rest) {
    count = 0
    while (1) {
        skip()
        if (i > n || indent(L[i]) < at) return
        if (indent(L[i]) > at) fail("indented too far")
        if (substr(L[i], at + 1) !~ /^-([ \t]|$)/) return
        rest = substr(L[i], at + 2)
        if (blank(rest)) {
            i++
            block(path "/" count, at + 1)
        } else {
            # The rest of the line is as good as a line of its own.
            match(rest, /^[ \t]*/)
            L[i] = spaces(at + 1 + RLENGTH) substr(rest, RLENGTH + 1)
            item(path "/" count, at)
        }
        count++
    }
}

function item(path, parent,   at, text) {
    at = indent(L[i])
    text = substr(L[i], at + 1)
    if (text ~ /^-([ \t]|$)/) sequence(path, at)
    else if (key(text)) mapping(path, at)
    else node(path, parent, text)
}

function mapping(path, at,   length_of_key, name, rest) {
    while (1) {
        skip()
        if (i > n || indent(L[i]) < at) return
        if (indent(L[i]) > at) fail("indented too far")
        rest = substr(L[i], at + 1)
        if (rest ~ /^\t/) fail("a tab in the indentation")
        length_of_key = key(rest)
        if (!length_of_key) {
            if (rest ~ /^-([ \t]|$)/) return
            fail("no key")
        }
        name = path "/" KEY
        rest = substr(rest, length_of_key + 1)
        sub(/^[ \t]+/, "", rest)
        if (blank(rest)) {
            i++
            skip()
            # A list may stand below its key without being indented.
            if (i <= n && indent(L[i]) == at && substr(L[i], at + 1) ~ /^-([ \t]|$)/) sequence(name, at)
            else if (i <= n && indent(L[i]) > at) block(name, at + 1)
            else emit(name, "")
        } else node(name, at, rest)
    }
}

# A value that starts in the middle of line i.
function node(path, parent, text,   value) {
    while (match(text, /^[!&][^ \t]*[ \t]+/)) text = substr(text, RLENGTH + 1)
    if (text ~ /^[|>]/) { literal(path, parent, text); return }
    if (text ~ /^[[{"']/) {
        F = text
        P = 1
        flow(path)
        if (!blank(substr(F, P))) fail("something after the end")
        i++
        return
    }
    value = plain(text)
    for (i++; i <= n && !blank(L[i]) && indent(L[i]) > parent; i++) {
        text = substr(L[i], indent(L[i]) + 1)
        if (key(text)) fail("indented too far")
        value = value " " plain(text)
    }
    emit(path, value)
}

function plain(text) {
    sub(/[ \t]+#.*$/, "", text)
    sub(/[ \t]+$/, "", text)
    if (text ~ /^(~|null)$/) return ""
    return text
}

function literal(path, parent, header,   fold, chomp, at, value, line, gap, started) {
    fold = header ~ /^>/
    chomp = header ~ /^.[0-9]*-/ ? "-" : header ~ /^.[0-9]*\+/ ? "+" : ""
    at = match(header, /[1-9]/) ? parent + substr(header, RSTART, 1) : 0
    gap = ""
    for (i++; i <= n; i++) {
        line = L[i]
        if (line ~ /^ *$/ && (!at || length(line) <= at)) { gap = gap "\n"; continue }
        if (!at) at = indent(line)
        if (at <= parent || indent(line) < at) break
        line = substr(line, at + 1)
        if (!started) value = gap line
        else if (!fold) value = value "\n" gap line
        else value = value (gap == "" ? " " : gap) line
        gap = ""
        started = 1
    }
    if (chomp == "+") value = value (started ? "\n" : "") gap
    else if (chomp == "" && started) value = value "\n"
    emit(path, value)
}

# The character at P of F; further lines are taken in as they are needed.
function peek() {
    while (P > length(F)) {
        if (i >= n) fail("no end")
        F = F "\n" L[++i]
    }
    return substr(F, P, 1)
}

function space() {
    while (1) {
        if (peek() ~ /[ \t\n]/) P++
        else if (peek() == "#" && substr(F, P - 1, 1) ~ /[ \t\n]/) { while (peek() != "\n") P++ }
        else return
    }
}

function flow(path,   count, name) {
    space()
    if (peek() == "[") {
        P++
        for (count = 0; ; count++) {
            space()
            if (peek() == "]") { P++; return }
            flow(path "/" count)
            comma("]")
        }
    } else if (peek() == "{") {
        P++
        while (1) {
            space()
            if (peek() == "}") { P++; return }
            name = word(":")
            space()
            if (peek() == ":") { P++; flow(path "/" name) } else emit(path "/" name, "")
            comma("}")
        }
    } else emit(path, word(""))
}

function comma(close_with) {
    space()
    if (peek() == ",") P++
    else if (peek() != close_with) fail("no comma and no " close_with)
}

# A quoted or plain word within a flow collection; a key also ends at a colon.
function word(also,   value) {
    if (peek() == "\"") return double()
    if (peek() == "'") return single()
    value = ""
    while (peek() !~ /[],}\n]/ && !(also != "" && peek() == also)) {
        value = value peek()
        P++
    }
    return plain(value)
}

function single(   value) {
    value = ""
    for (P++; ; P++) {
        if (peek() == "'") {
            if (substr(F, P + 1, 1) != "'") { P++; return value }
            P++
        }
        value = value folded()
    }
}

function double(   value, at, code) {
    value = ""
    for (P++; ; P++) {
        if (peek() == "\"") { P++; return value }
        if (peek() != "\\") { value = value folded(); continue }
        P++
        at = peek()
        if (at == "n") value = value "\n"
        else if (at == "t") value = value "\t"
        else if (at == "r") value = value "\r"
        else if (at == "e") value = value "\033"
        else if (at == "\n") { while (substr(F, P + 1, 1) == " ") P++ }
        else if (at == "x" || at == "u") {
            code = substr(F, P + 1, at == "x" ? 2 : 4)
            P += length(code)
            value = value utf8(hex(code))
        } else value = value at
    }
}

# The character at P; within quotes, the end of a line and what is around it is one space.
function folded() {
    if (peek() != "\n") return peek()
    while (peek() ~ /[ \t\n]/) P++
    P--
    return " "
}

function hex(text,   value, k) {
    value = 0
    for (k = 1; k <= length(text); k++) value = value * 16 + index("0123456789abcdef", tolower(substr(text, k, 1))) - 1
    return value
}

function utf8(code) {
    if (code < 128) return sprintf("%c", code)
    if (code < 2048) return sprintf("%c%c", 192 + int(code / 64), 128 + code % 64)
    return sprintf("%c%c%c", 224 + int(code / 4096), 128 + int(code / 64) % 64, 128 + code % 64)
}
