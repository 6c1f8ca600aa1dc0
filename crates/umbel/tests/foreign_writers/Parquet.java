// Split-block filters of Parquet's Java library, for Writer: the bare bit set, as it stands behind the header in a file.

import java.io.ByteArrayOutputStream;
import org.apache.parquet.column.values.bloomfilter.BlockSplitBloomFilter;
import org.apache.parquet.io.api.Binary;

public class Parquet implements Writer.Peer {
    private BlockSplitBloomFilter filter;

    @Override
    public void create(String bytes, String funnel, long keys, double rate) {
        filter = new BlockSplitBloomFilter(Integer.parseInt(bytes));
    }

    @Override
    public void read(byte[] file, String funnel) {
        filter = new BlockSplitBloomFilter(file);
    }

    private long hash(Object key) {
        if (key instanceof String) {
            return filter.hash(Binary.fromString((String) key));
        } else if (key instanceof byte[]) {
            return filter.hash(Binary.fromConstantByteArray((byte[]) key));
        } else if (key instanceof Integer) {
            return filter.hash(((Integer) key).intValue());
        }
        return filter.hash(((Long) key).longValue());
    }

    @Override
    public void insert(Object key) {
        filter.insertHash(hash(key));
    }

    @Override
    public boolean contains(Object key) {
        return filter.findHash(hash(key));
    }

    @Override
    public byte[] write() throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        filter.writeTo(bytes);
        return bytes.toByteArray();
    }
}
