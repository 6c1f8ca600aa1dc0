// Filters of Guava, for Writer. Its older strategy is still read but no longer written, so it is set by reflection.

import com.google.common.hash.BloomFilter;
import com.google.common.hash.Funnel;
import com.google.common.hash.Funnels;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;

public class Guava implements Writer.Peer {
    private BloomFilter<Object> filter;

    @SuppressWarnings("unchecked")
    private static Funnel<Object> funnel(String name) {
        Object funnel;
        switch (name) {
            case "utf8": funnel = Funnels.stringFunnel(StandardCharsets.UTF_8); break;
            case "unencoded": funnel = Funnels.unencodedCharsFunnel(); break;
            case "bytes": funnel = Funnels.byteArrayFunnel(); break;
            case "long": funnel = Funnels.longFunnel(); break;
            default: funnel = Funnels.integerFunnel(); break;
        }
        return (Funnel<Object>) funnel;
    }

    @Override
    @SuppressWarnings("unchecked")
    public void create(String strategy, String funnel, long keys, double rate) throws Exception {
        if (strategy.equals("1")) {
            filter = BloomFilter.create(funnel(funnel), keys, rate);
            return;
        }
        Object[] strategies = Class.forName("com.google.common.hash.BloomFilterStrategies").getEnumConstants();
        Class<?> type = Class.forName("com.google.common.hash.BloomFilter$Strategy");
        Method create = BloomFilter.class.getDeclaredMethod("create", Funnel.class, long.class, double.class, type);
        create.setAccessible(true);
        filter = (BloomFilter<Object>) create.invoke(null, funnel(funnel), keys, rate, strategies[0]);
    }

    @Override
    public void read(byte[] file, String funnel) throws Exception {
        filter = BloomFilter.readFrom(new ByteArrayInputStream(file), funnel(funnel));
    }

    @Override
    public void insert(Object key) {
        filter.put(key);
    }

    @Override
    public boolean contains(Object key) {
        return filter.mightContain(key);
    }

    @Override
    public byte[] write() throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        filter.writeTo(bytes);
        return bytes.toByteArray();
    }
}
