# Creates the files that the examples in the help of the commands use.
set -e
mkdir logs letters articles src tests
seq 200 | sed 's|.*|192.0.2.& GET /page&|' > access.log
gzip -c access.log > access.log.gz
cp access.log.gz access.log.1.gz
for list in june july august seen new today ended sold wednesday tuesday monday queries alerts big hosts suspects others; do
  { seq 50; seq 20; echo $list; } > $list.txt
done
cp big.txt big.log
cp alerts.txt alerts.log
sed 's/ .*//' access.log > hosts.txt
cp hosts.txt suspects.txt
seq 100000 200000 > others.txt
printf 'name,email\nAda,ada@example.org\n' > customers.csv
printf 'a,b1\nb,b2\n' > others.csv
printf 'the\nquick\nbrown\nfox\nbanana\n' > words.txt
printf 'Ada\n' | tee users.txt > names.txt
printf 'The quick brown fox, dear Ada\n' | tee letter.txt essay.txt diary.txt draft1.txt draft2.txt README.md > brief.txt
printf 'my holiday in 2023\n' > letters/holiday.txt
cp draft1.txt draft2.txt letters/holiday.txt articles
cp access.log backup1.tar
cp access.log backup2.tar
cp access.log plans.pdf
sed 's/ .*/\tNL/' access.log > addresses.tsv
sed 's/ .*/\t7/' access.log | gzip > scores.tsv.gz
printf '14C\tfree\n14D\ttaken\n' > seats.tsv
printf 'apple\t0.80\nmelon\t3\n1\t2\n' > prices.tsv
printf 'apple\nnuts\n' > shopping.txt
printf '14C\ttaken\n' > changes.tsv
printf 'connection timeout\ndisk full\n' > logs/a.log
printf 'Warning: refused\n' > logs/b.log
printf 'password\n123456\n' | tee common.txt used-before.txt company-words.txt > candidates.txt
printf '5BAA61E4C9B93F3F0682250B6CF8331B7EE68FD8:9659365\n' > pwned-passwords.txt
printf 'evil.example\n' > phishing.txt
printf 'http://www.evil.example/page\n' > visited.txt
printf 'a long enough passphrase\n' > pass.txt
chmod 600 pass.txt
cp -p pass.txt old
cp -p pass.txt new
printf '192.0.2.7\n' | tee drop.txt > clients.txt
printf 'GET\n' > signatures.txt
printf '474554\n' > magic.hex
printf 'R1 R2\nR2 R3\nR3 R1\nR3 R4\n' | tee net > net.txt
printf '<graphml><graph><node id="a"/><node id="b"/><edge source="a" target="b"/></graph></graphml>' > net.graphml

umbel build -n 1000 -o june.umbel june.txt
umbel build --like june.umbel -o july.umbel july.txt
umbel build --like june.umbel -o august.umbel august.txt
umbel build -o seen.umbel seen.txt
umbel build -n 1e6 -o large.umbel seen.txt
umbel build --shards 4 -n 1e4 -o seen.shards seen.txt
umbel build --shards 4 -n 1e4 -o part1.shards june.txt
umbel build --shards 4 -n 1e4 -o part2.shards july.txt
umbel build -o bad.umbel hosts.txt
umbel build -o worse.umbel suspects.txt
umbel build -o words.umbel words.txt
umbel build --format guava --funnel utf8 -n 1000 -o users.bloom users.txt
umbel build --format dcso hosts.txt | gzip > hosts.bloom.gz
umbel build --kind counting -o sessions.umbel ended.txt
umbel build --kind counting -o stock.umbel sold.txt
umbel build --kind quotient -n 1e6 -o quotient.umbel seen.txt
umbel map build -o countries.umbel addresses.tsv
umbel map build --mutable --values free,taken -o seats.umbel seats.tsv
umbel table put prices prices.tsv
umbel count build -n 1e5 -o hosts.umbel hosts.txt
umbel count answer --shape hosts.umbel -o shape
umbel count ask --cover 5 --universe hosts.txt shape 192.0.2.7 -o question
umbel count answer hosts.umbel question -o answer
umbel distinct -o monday.umbel monday.txt
umbel distinct -o tuesday.umbel tuesday.txt
umbel top -o monday.top monday.txt
umbel top -o tuesday.top tuesday.txt
umbel index build logs
umbel password build common.txt -o weak.umbel
umbel url build phishing.txt -o bad.urls
umbel vault init --memory 16MiB --passphrase-file pass.txt secrets
umbel vault add --passphrase-file pass.txt secrets diary.txt letters
umbel net record capture.pcap -o store
for copy in r1 in out attack all; do cp capture.pcap $copy.pcap; done
printf 'R1 R2\nR2 R3\nR3 R4\nNAT R1\n' | tee net > net.txt
for router in R1 R2 R3 R4; do umbel net trace record --router $router -o spie r1.pcap; done
mkdir -p home/.local/share/bash-completion/completions home/.config/fish/completions
printf '2137\n2400\n' > ids.txt
