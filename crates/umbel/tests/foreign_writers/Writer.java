// Writes a Bloom filter with its original library, or reads one, and reports the keys that it accepts.
//
//   java Writer LIBRARY ARGUMENT FUNNEL KEYS RATE MEMBERS QUESTIONS FILE [...]
//
// LIBRARY is Guava, Spark, Datasketches or Parquet. ARGUMENT is the strategy of Guava, the version of Spark with an
// optional seed after a comma, the seed of DataSketches, or the bytes of a Parquet filter. If FILE exists, the filter is
// read from it; otherwise it is made for KEYS keys at RATE, filled from the lines of MEMBERS, and written. The lines of
// QUESTIONS that it accepts are written to FILE.yes. All eight arguments may repeat for further files, so that one
// process serves a whole test.

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

public class Writer {
    /** A filter of one of the libraries. */
    interface Peer {
        void create(String argument, String funnel, long keys, double rate) throws Exception;
        void read(byte[] file, String funnel) throws Exception;
        void insert(Object key) throws Exception;
        boolean contains(Object key) throws Exception;
        byte[] write() throws Exception;
    }

    /** Returns the lines of a file, each as one character per byte. */
    static List<String> lines(String path) throws Exception {
        String text = Files.readString(Path.of(path), StandardCharsets.ISO_8859_1);
        List<String> lines = new ArrayList<>(List.of(text.split("\n", -1)));
        lines.remove(lines.size() - 1);
        return lines;
    }

    /** Returns the key of a line. */
    static Object key(String funnel, String line) {
        byte[] bytes = line.getBytes(StandardCharsets.ISO_8859_1);
        switch (funnel) {
            case "long": return Long.parseLong(line);
            case "int": return Integer.parseInt(line);
            case "bytes": return bytes;
            default: return new String(bytes, StandardCharsets.UTF_8);
        }
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < args.length; i += 8) {
            Peer peer = (Peer) Class.forName(args[i]).getDeclaredConstructor().newInstance();
            String funnel = args[i + 2];
            Path file = Path.of(args[i + 7]);
            if (Files.exists(file)) {
                peer.read(Files.readAllBytes(file), funnel);
            } else {
                peer.create(args[i + 1], funnel, Long.parseLong(args[i + 3]), Double.parseDouble(args[i + 4]));
                for (String line : lines(args[i + 5])) {
                    peer.insert(key(funnel, line));
                }
                Files.write(file, peer.write());
            }
            ByteArrayOutputStream accepted = new ByteArrayOutputStream();
            for (String line : lines(args[i + 6])) {
                if (peer.contains(key(funnel, line))) {
                    accepted.write((line + "\n").getBytes(StandardCharsets.ISO_8859_1));
                }
            }
            Files.write(Path.of(args[i + 7] + ".yes"), accepted.toByteArray());
        }
    }
}
