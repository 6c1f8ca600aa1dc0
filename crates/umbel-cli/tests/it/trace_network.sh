# Builds a network of routers in network namespaces, sends packets through it, and captures them at
# both sides of every router. Usage: trace_network.sh FOLDER
#
#   A - R1 - R2 - R3 - R4 - V
#            |    |
#        B - R5   R6 - C
#
# R2 translates the source addresses of what it sends to R3 in IPv4, and its link to R3 is too narrow
# for large packets. It cuts those of A, which sends from an address that nobody has a route to. It
# must not cut the first large packet of B, and answers with an ICMP error.
set -eu
folder=$1
net="umbel$$"
nodes="A B C V R1 R2 R3 R4 R5 R6"
captures=""

clean_up() {
  for capture in $captures; do kill "$capture" 2>/dev/null || true; done
  wait 2>/dev/null || true
  for node in $nodes; do ip netns del "$net$node" 2>/dev/null || true; done
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP

in_node() { node=$1; shift; ip netns exec "$net$node" "$@"; }

for node in $nodes; do
  ip netns add "$net$node"
  ip -n "$net$node" link set lo up
  in_node "$node" sh -c '
    echo 1 > /proc/sys/net/ipv4/ip_forward
    echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
    for file in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 > $file; done
    echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad
    echo 0 > /proc/sys/net/ipv6/conf/default/dad_transmits
    echo 0 > /proc/sys/net/ipv6/conf/default/router_solicitations'
done

# Joins two nodes; the first gets the address .1, the second .2.
join() {
  ip -n "$net$1" link add "$2" type veth peer name "$1" netns "$net$2"
  ip -n "$net$1" addr add "10.77.$3.1/24" dev "$2"
  ip -n "$net$2" addr add "10.77.$3.2/24" dev "$1"
  ip -n "$net$1" addr add "fd77:$3::1/64" dev "$2" nodad
  ip -n "$net$2" addr add "fd77:$3::2/64" dev "$1" nodad
  ip -n "$net$1" link set "$2" up
  ip -n "$net$2" link set "$1" up
}
join A R1 1; join R1 R2 2; join R2 R3 3; join R3 R4 4; join R4 V 5
join B R5 6; join R5 R2 7; join C R6 8; join R6 R3 9

# Everything goes towards V, or back by the route that is given.
route() {
  ip -n "$net$1" route add "$2" via "10.77.$3"
  ip -6 -n "$net$1" route add "$4" via "fd77:$5"
}
route A default 1.2 default 1::2;  route R1 default 2.2 default 2::2
route R2 default 3.2 default 3::2; route R3 default 4.2 default 4::2
route V default 5.1 default 5::1
route B default 6.2 default 6::2;  route R5 default 7.2 default 7::2
route C default 8.2 default 8::2;  route R6 default 9.2 default 9::2
route R2 10.77.6.0/24 7.1 fd77:6::/64 7::1

# The forged source of A, whose packets may be cut.
in_node A sh -c 'echo 1 > /proc/sys/net/ipv4/ip_no_pmtu_disc'
ip -n "${net}A" addr add 198.51.100.9/32 dev lo
ip -n "${net}A" route replace default via 10.77.1.2 src 198.51.100.9
ip -n "${net}R2" link set R3 mtu 1280
ip -n "${net}R3" link set R2 mtu 1280
in_node R2 nft -f - <<'RULES'
table ip nat {
  chain post { type nat hook postrouting priority 100; oifname "R3" ip protocol udp masquerade; }
}
RULES

# A capture has begun when its file has a header. `exec` makes its number that of the program.
capture() {
  (exec ip netns exec "$net$1" tcpdump -Z root --immediate-mode -i any -Q "$2" -s 0 -U \
    -w "$folder/$1-$2.pcap" ip or ip6 2>/dev/null) &
  captures="$captures $!"
}
for node in R1 R2 R3 R4 R5 R6; do capture $node in; capture $node out; done
capture V in
capture B in
for file in R1-in R1-out R2-in R2-out R3-in R3-out R4-in R4-out R5-in R5-out R6-in R6-out V-in B-in; do
  for _ in $(seq 200); do [ -s "$folder/$file.pcap" ] && break; sleep 0.05; done
done

# Sends random bytes to V, at a port that shows the sender.
send() {
  in_node "$1" bash -c "head -c $4 /dev/urandom > '$folder/payload'; cat '$folder/payload' > /dev/udp/$2/$3"
}
for _ in 1 2 3; do
  for sender in "A 9001" "B 9002" "C 9003"; do
    # Two words.
    set -- $sender
    send "$1" 10.77.5.2 "$2" 100
    send "$1" 10.77.5.2 "$2" 1400
    send "$1" fd77:5::2 "$2" 100
  done
done

# The first large packet of B is lost, and those of A and B arrive in two parts. Wait for all of them,
# and until the captures do not grow any more: a capture that is stopped loses what it has not read, and
# on a busy machine it may read nothing for a while.
arrived() { tcpdump -nr "$folder/V-in.pcap" 'ip proto 17 or (ip6 and udp)' 2>/dev/null | wc -l; }
for _ in $(seq 100); do
  [ "$(arrived)" -ge 31 ] && break
  sleep 0.1
done
before="" same=0
for _ in $(seq 50); do
  [ "$same" -lt 5 ] || break
  now=$(cat "$folder"/*.pcap | wc -c)
  if [ "$now" = "$before" ]; then same=$((same + 1)); else same=0; fi
  before=$now
  sleep 0.4
done
