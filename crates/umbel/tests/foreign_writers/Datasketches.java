// Filters of Apache DataSketches, for Writer.

import org.apache.datasketches.filters.bloomfilter.BloomFilter;
import org.apache.datasketches.filters.bloomfilter.BloomFilterBuilder;
import org.apache.datasketches.memory.Memory;

public class Datasketches implements Writer.Peer {
    private BloomFilter filter;

    @Override
    public void create(String seed, String funnel, long keys, double rate) {
        filter = BloomFilterBuilder.createByAccuracy(keys, rate, Long.parseLong(seed));
    }

    @Override
    public void read(byte[] file, String funnel) {
        filter = BloomFilter.heapify(Memory.wrap(file));
    }

    @Override
    public void insert(Object key) {
        if (key instanceof String) {
            filter.update((String) key);
        } else if (key instanceof byte[]) {
            filter.update((byte[]) key);
        } else {
            filter.update(((Number) key).longValue());
        }
    }

    @Override
    public boolean contains(Object key) {
        if (key instanceof String) {
            return filter.query((String) key);
        } else if (key instanceof byte[]) {
            return filter.query((byte[]) key);
        }
        return filter.query(((Number) key).longValue());
    }

    @Override
    public byte[] write() {
        return filter.toByteArray();
    }
}
