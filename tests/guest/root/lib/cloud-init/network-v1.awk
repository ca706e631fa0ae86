# Lines of network-config version 1 to: MAC, name, place, what to do.
{ split($1, path, "/") }
path[1] != "config" { next }
{ number = path[2]; what = path[3] }
!(number in seen) { seen[number] = 1; order[count++] = number }
what == "type" { type[number] = $2 }
what == "name" { name[number] = $2 }
what == "mac_address" { mac[number] = $2 }
what == "mtu" { text[number] = text[number] "mtu " $2 "\n" }
what == "address" { servers = servers "dns " $2 "\n" }
what == "subnets" {
    at = number "/" path[4]
    if (!(at in known)) { known[at] = 1; subnets[number] = subnets[number] " " path[4] }
    if (path[5] == "type") kind[at] = $2
    else if (path[5] == "address") address[at] = $2
    else if (path[5] == "netmask") mask[at] = $2
    else if (path[5] == "gateway") gateway[at] = $2
    else if (path[5] == "dns_nameservers") servers_of[number] = servers_of[number] "dns " $2 "\n"
    else if (path[5] == "routes") {
        if (path[7] == "network" || path[7] == "destination") to[at "/" path[6]] = $2
        else if (path[7] == "netmask") to[at "/" path[6]] = to[at "/" path[6]] "/" $2
        else if (path[7] == "gateway") via[at "/" path[6]] = $2
        if (path[6] + 1 > routes[at]) routes[at] = path[6] + 1
    }
}
END {
    place = 0
    for (k = 0; k < count; k++) {
        number = order[k]
        if (type[number] != "physical") continue
        n = split(subnets[number], numbers, " ")
        for (s = 1; s <= n; s++) subnet(number, number "/" numbers[s])
        out = text[number] servers_of[number] (place == 0 ? servers : "")
        if (out == "") out = "none\n"
        n = split(substr(out, 1, length(out) - 1), each, "\n")
        for (r = 1; r <= n; r++) print mac[number] "\t" name[number] "\t" place "\t" each[r]
        place++
    }
}
function subnet(number, at,   full, r) {
    if (kind[at] == "dhcp" || kind[at] == "dhcp4") text[number] = text[number] "dhcp4\n"
    else if (kind[at] == "dhcp6") text[number] = text[number] "dhcp6\n"
    else if (address[at] != "") {
        full = address[at]
        if (full !~ /\// && mask[at] != "") full = full "/" mask[at]
        text[number] = text[number] "address " full "\n"
        if (gateway[at] != "") text[number] = text[number] "gateway " gateway[at] "\n"
        for (r = 0; r < routes[at]; r++) text[number] = text[number] "route " to[at "/" r] " " via[at "/" r] "\n"
    }
}
