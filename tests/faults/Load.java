import java.io.FileReader;
import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * The part of a fault run's load that Java writes: two idempotent producers and a transactional one.
 *
 * <p>Arguments: the client file, a prefix for names, the largest batch in bytes, the topics. It writes until
 * its input ends. Every write that was acknowledged, and committed where that matters, is a line:
 * value, topic, partition, offset.
 */
public class Load {
    static final List<String> CODECS = List.of("none", "lz4", "zstd", "gzip");
    static final long WAIT_MS = 30_000;
    static volatile boolean stop = false;
    static Properties settings;
    static String prefix;
    static int largest;
    static List<String> topics;

    public static void main(String[] args) throws Exception {
        settings = new Properties();
        try (var file = new FileReader(args[0])) {
            settings.load(file);
        }
        settings.remove("group.id");
        prefix = args[1];
        largest = Integer.parseInt(args[2]);
        topics = Arrays.asList(args).subList(3, args.length);
        var threads = new ArrayList<Thread>();
        threads.add(new Thread(() -> write("java-1", 1)));
        threads.add(new Thread(() -> write("java-2", 2)));
        threads.add(new Thread(() -> transact("java-t", 3)));
        threads.forEach(Thread::start);
        while (System.in.read() >= 0) {}
        stop = true;
        for (var thread : threads) thread.join();
        System.out.flush();
        System.exit(0);
    }

    static KafkaProducer<byte[], byte[]> producer(int number, String transactions) {
        var mine = new Properties();
        mine.putAll(settings);
        mine.put("acks", "all");
        mine.put("enable.idempotence", "true");
        mine.put("linger.ms", "5");
        mine.put("buffer.memory", "8388608");
        mine.put("max.block.ms", String.valueOf(WAIT_MS));
        mine.put("compression.type", CODECS.get(number % CODECS.size()));
        if (transactions != null) mine.put("transactional.id", transactions);
        return new KafkaProducer<>(mine, new ByteArraySerializer(), new ByteArraySerializer());
    }

    static ProducerRecord<byte[], byte[]> record(String topic, String name, long number, Random random) {
        var record = new ProducerRecord<>(topic, ("k" + number % 7).getBytes(), (topic + "|" + name + ":" + number).getBytes());
        record.headers().add("pad", "x".repeat(random.nextInt(300)).getBytes());
        return record;
    }

    static void tell(String value, RecordMetadata at) {
        synchronized (System.out) {
            System.out.println(value + "\t" + at.topic() + "\t" + at.partition() + "\t" + at.offset());
        }
    }

    static void rest(Random random) {
        try {
            Thread.sleep(50 + random.nextInt(350));
        } catch (InterruptedException end) {
            stop = true;
        }
    }

    static void write(String who, int seed) {
        var random = new Random(seed);
        var name = prefix + who;
        long number = 0;
        try (var producer = producer(seed, null)) {
            for (int turn = 0; !stop; turn++) {
                try {
                    for (int left = 1 + random.nextInt(6); left > 0; left--) {
                        var record = record(topics.get(random.nextInt(3) == 0 ? 1 : 0), name, number++, random);
                        var value = new String(record.value());
                        producer.send(record, (at, error) -> {
                            if (error == null && at.hasOffset()) tell(value, at);
                        });
                    }
                    if (turn % 40 == 39) {
                        producer.send(new ProducerRecord<>(topics.get(0), new byte[largest + 1000 + random.nextInt(1000)]));
                    }
                } catch (KafkaException error) {
                    System.err.println(name + ": " + error);
                }
                rest(random);
            }
            producer.flush();
        }
    }

    static void transact(String who, int seed) {
        var random = new Random(seed);
        var name = prefix + who;
        long number = 0;
        KafkaProducer<byte[], byte[]> producer = null;
        for (int turn = 0; !stop; turn++) {
            rest(random);
            try {
                if (producer == null) {
                    producer = producer(seed, name);
                    producer.initTransactions();
                }
                producer.beginTransaction();
                var sent = new LinkedHashMap<String, Future<RecordMetadata>>();
                for (int left = 1 + random.nextInt(5); left > 0; left--) {
                    var record = record(topics.get(random.nextInt(3) == 0 ? 1 : 0), name, number++, random);
                    sent.put(new String(record.value()), producer.send(record));
                }
                if (turn % 4 == 3) {
                    producer.flush();
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                    for (var one : sent.entrySet()) tell(one.getKey(), one.getValue().get());
                }
            } catch (KafkaException | InterruptedException | ExecutionException error) {
                System.err.println(name + ": " + error);
                // What it left open is aborted when the next one takes its name over.
                if (producer != null) producer.close(java.time.Duration.ZERO);
                producer = null;
            }
        }
        if (producer == null) {
            producer = producer(seed, name);
            try {
                producer.initTransactions();
            } catch (KafkaException error) {
                System.err.println(name + ": " + error);
            }
        }
        producer.close();
    }
}
