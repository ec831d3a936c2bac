// Kafka's own partitioner and serializers, asked line by line: "partition COUNT HEX", "int N", "long N",
// "double N", "string HEX". Answers are a number for the first, hexadecimal bytes for the others.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;
import org.apache.kafka.common.serialization.DoubleSerializer;
import org.apache.kafka.common.serialization.IntegerSerializer;
import org.apache.kafka.common.serialization.LongSerializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Agree {
    public static void main(String[] args) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        var out = new StringBuilder();
        for (var line = in.readLine(); line != null; line = in.readLine()) {
            out.append(answer(line.split(" ", -1))).append('\n');
        }
        System.out.print(out);
    }

    private static String answer(String[] words) {
        var hex = HexFormat.of();
        return switch (words[0]) {
            case "partition" -> Integer.toString(
                BuiltInPartitioner.partitionForKey(hex.parseHex(words[2]), Integer.parseInt(words[1])));
            case "int" -> hex.formatHex(new IntegerSerializer().serialize("t", Integer.valueOf(words[1])));
            case "long" -> hex.formatHex(new LongSerializer().serialize("t", Long.valueOf(words[1])));
            case "double" -> hex.formatHex(new DoubleSerializer().serialize("t", Double.valueOf(words[1])));
            case "string" -> hex.formatHex(new StringSerializer().serialize("t",
                new String(hex.parseHex(words[1]), StandardCharsets.UTF_16BE)));
            default -> throw new IllegalArgumentException(words[0]);
        };
    }
}
