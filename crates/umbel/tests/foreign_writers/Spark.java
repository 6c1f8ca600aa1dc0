// Filters of Spark, for Writer. Spark writes its second version from 4.1 on. `create` sizes filters of both versions by
// the same formulas, and accepts a rate only for the one that is the default.

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import org.apache.spark.util.sketch.BloomFilter;

public class Spark implements Writer.Peer {
    private BloomFilter filter;

    @Override
    public void create(String argument, String funnel, long keys, double rate) {
        String[] parts = argument.split(",");
        BloomFilter.Version version = BloomFilter.Version.valueOf("V" + parts[0]);
        int seed = parts.length > 1 ? Integer.parseInt(parts[1]) : 0;
        filter = BloomFilter.create(version, keys, BloomFilter.optimalNumOfBits(keys, rate), seed);
    }

    @Override
    public void read(byte[] file, String funnel) throws Exception {
        filter = BloomFilter.readFrom(new ByteArrayInputStream(file));
    }

    @Override
    public void insert(Object key) {
        if (key instanceof Integer) {
            filter.put(key);
        } else if (key instanceof Long) {
            filter.putLong((Long) key);
        } else if (key instanceof String) {
            filter.putString((String) key);
        } else {
            filter.putBinary((byte[]) key);
        }
    }

    @Override
    public boolean contains(Object key) {
        if (key instanceof Integer) {
            return filter.mightContain(key);
        } else if (key instanceof Long) {
            return filter.mightContainLong((Long) key);
        } else if (key instanceof String) {
            return filter.mightContainString((String) key);
        }
        return filter.mightContainBinary((byte[]) key);
    }

    @Override
    public byte[] write() throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        filter.writeTo(bytes);
        return bytes.toByteArray();
    }
}
