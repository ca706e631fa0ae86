# Lines of network-config version 2 to: MAC, name, place, what to do.
{ split($1, path, "/") }
path[1] != "ethernets" { next }
!(path[2] in place) { place[path[2]] = count++; names[count - 1] = path[2] }
{
    name = path[2]
    what = path[3]
    if (what == "match" && path[4] == "macaddress") mac[name] = $2
    else if (what == "dhcp4" && $2 ~ /^([Tt]rue|yes|on)$/) add("dhcp4")
    else if (what == "dhcp6" && $2 ~ /^([Tt]rue|yes|on)$/) add("dhcp6")
    else if (what == "addresses") add("address " $2)
    else if (what == "gateway4" || what == "gateway6") last[name] = last[name] "gateway " $2 "\n"
    else if (what == "nameservers" && path[4] == "addresses") add("dns " $2)
    else if (what == "nameservers" && path[4] == "search") add("search " $2)
    else if (what == "mtu") add("mtu " $2)
    else if (what == "routes") {
        at = name "/" path[4]
        if (!(at in to)) { routes[name] = routes[name] " " path[4]; to[at] = "default" }
        if (path[5] == "to") to[at] = $2
        else if (path[5] == "via") via[at] = $2
        else if (path[5] == "metric") metric[at] = $2
    }
}
function add(line) { lines[name] = lines[name] line "\n" }
END {
    for (k = 0; k < count; k++) {
        name = names[k]
        text = lines[name] last[name]
        n = split(routes[name], numbers, " ")
        for (r = 1; r <= n; r++) {
            at = name "/" numbers[r]
            text = text "route " to[at] " " via[at] " " metric[at] "\n"
        }
        if (text == "") text = "none\n"
        n = split(substr(text, 1, length(text) - 1), each, "\n")
        for (r = 1; r <= n; r++) print mac[name] "\t" name "\t" k "\t" each[r]
    }
}
