import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.FileReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.state.WindowStore;

/**
 * The windowed sum of `bench/totals.py` in Kafka Streams, as its manual would have it written.
 *
 * <p>Arguments: the client file, the application's name, a directory for state, the topic that is read, the one
 * that is written, the window and the time that records may be late, both in seconds. It runs until SIGTERM.
 */
public class Totals {
    static final ObjectMapper JSON = new ObjectMapper();
    static final Duration KEPT = Duration.ofHours(1);

    @JsonIgnoreProperties(ignoreUnknown = true)
    record Reading(double kw) {}

    record Sum(double kw, long n) {}

    public static void main(String[] args) throws Exception {
        var settings = new Properties();
        try (var file = new FileReader(args[0])) {
            settings.load(file);
        }
        settings.remove("group.id");
        settings.put("application.id", args[1]);
        settings.put("state.dir", args[2]);
        settings.put("processing.guarantee", "exactly_once_v2");
        settings.put("num.stream.threads", "2");
        settings.put("replication.factor", "1");
        settings.put("auto.offset.reset", "earliest");
        settings.put("commit.interval.ms", "1000"); // as often as the other side's batches begin
        settings.put("statestore.cache.max.bytes", String.valueOf(64 << 20));
        settings.put("producer.linger.ms", "20");
        settings.put("producer.batch.size", String.valueOf(128 << 10));
        settings.put("consumer.max.poll.records", "4000");
        var builder = new StreamsBuilder();
        builder.stream(args[3], Consumed.with(Serdes.Integer(), readings()))
                .groupByKey()
                .windowedBy(TimeWindows.ofSizeAndGrace(seconds(args[5]), seconds(args[6])))
                .emitStrategy(EmitStrategy.onWindowClose())
                .aggregate(
                        () -> new Sum(0, 0),
                        (key, one, sum) -> new Sum(sum.kw() + one.kw(), sum.n() + 1),
                        Materialized.<Integer, Sum, WindowStore<Bytes, byte[]>>with(Serdes.Integer(), sums())
                                // Else a window is kept for its size and the grace alone. Sums are emitted once a
                                // second, and in a backlog that second is minutes of the records' times: the store
                                // would forget windows before they are emitted, and nobody would hear of it.
                                .withRetention(KEPT))
                .toStream()
                .map((window, sum) -> KeyValue.pair(window.key(), told(window, sum)))
                .to(args[4], Produced.with(Serdes.Integer(), Serdes.ByteArray()));
        var streams = new KafkaStreams(builder.build(), settings);
        var ended = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            streams.close(Duration.ofSeconds(20));
            ended.countDown();
        }));
        // Threads that died leave a process that does nothing, and whoever measures it would wait in vain.
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.ERROR) Runtime.getRuntime().halt(1);
        });
        streams.start();
        ended.await();
    }

    static Duration seconds(String text) {
        return Duration.ofSeconds(Long.parseLong(text));
    }

    static byte[] told(Windowed<Integer> window, Sum sum) {
        try {
            return JSON.writeValueAsBytes(Map.of(
                    "turbine", window.key(),
                    "begin", window.window().startTime().toString(),
                    "kw", sum.kw(),
                    "n", sum.n()));
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    static Serde<Reading> readings() {
        return Serdes.serdeFrom((topic, reading) -> {
            try {
                return JSON.writeValueAsBytes(reading);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }, (topic, bytes) -> {
            try {
                return bytes == null ? null : JSON.readValue(bytes, Reading.class);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        });
    }

    static Serde<Sum> sums() {
        return Serdes.serdeFrom(
                (topic, sum) -> sum == null
                        ? null
                        : ByteBuffer.allocate(16).putDouble(sum.kw()).putLong(sum.n()).array(),
                (topic, bytes) -> {
                    if (bytes == null) return null;
                    var buffer = ByteBuffer.wrap(bytes);
                    return new Sum(buffer.getDouble(), buffer.getLong());
                });
    }
}
