import java.util.HashMap;
import java.util.Map;

/** Fills a map with records, replaces some, and adds up what it reads. */
public final class Records {
    private record Item(long key, long[] values) {}

    private static long mixed(long number) {
        long mix = (number + 1) * 0x9E3779B97F4A7C15L;
        mix = (mix ^ (mix >>> 31)) * 0xBF58476D1CE4E5B9L;
        return mix ^ (mix >>> 29);
    }

    private static Item item(long key, long turn) {
        long[] values = new long[8];
        for (int at = 0; at < values.length; at++) {
            values[at] = mixed(key * 8 + at + turn);
        }
        return new Item(key, values);
    }

    public static void main(String[] arguments) {
        int records = Integer.parseInt(arguments[0]);
        int operations = Integer.parseInt(arguments[1]);
        long begun = System.nanoTime();
        Map<Long, Item> map = new HashMap<>();
        for (long key = 0; key < records; key++) {
            map.put(key, item(key, 0));
        }
        long sum = 0;
        long place = 1;
        for (int turn = 0; turn < operations; turn++) {
            long key = Long.remainderUnsigned(mixed(place ^ turn), records);
            Item found = map.get(key);
            sum = sum * 31 + found.values()[turn % 8] + found.key();
            place = sum;
            if (turn % 4 == 0) {
                map.put(key, item(key, turn));
            }
        }
        for (Item item : map.values()) {
            for (long value : item.values()) {
                sum = sum * 31 + value;
            }
        }
        double tookS = (System.nanoTime() - begun) / 1e9;
        System.out.printf("answer=%016x measured_s=%.3f%n", sum, tookS);
    }
}
