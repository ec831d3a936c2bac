// Kafka's own encoder, decoder, cleaner and broker-side check of batches, for tests of ours.
// A request is a line of words, an answer is a line: "ok ANSWER" or "error WHY". Bytes are in hex, "-" is null.
// A record is offset,timestamp,key,value,name=value&name=value; a batch is fields;record;record; batches are joined by "|".

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.PrimitiveRef;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogValidator;

public class Batches {
    private static final HexFormat HEX = HexFormat.of();
    private static final int ROOM_BYTES = 16 * 1024 * 1024;

    public static void main(String[] args) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                out.println("ok " + answer(line.split(" ")));
            } catch (Throwable error) {
                out.println("error " + String.valueOf(error).replace('\n', ' '));
            }
        }
    }

    private static String answer(String[] words) {
        return switch (words[0]) {
            case "encode" -> encode(words);
            case "mark" -> mark(words);
            case "clean" -> clean(words);
            case "decode" -> decode(records(words[1]));
            case "validate" -> validate(words);
            default -> throw new IllegalArgumentException(words[0]);
        };
    }

    // encode CODEC BASE_OFFSET APPEND_TIME PRODUCER_ID EPOCH SEQUENCE TRANSACTIONAL LEADER_EPOCH RECORDS
    private static String encode(String[] words) {
        boolean appendTime = !words[3].equals("-");
        var builder = MemoryRecords.builder(
            ByteBuffer.allocate(ROOM_BYTES), RecordBatch.CURRENT_MAGIC_VALUE, Compression.of(words[1]).build(),
            appendTime ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME, Long.parseLong(words[2]),
            appendTime ? Long.parseLong(words[3]) : RecordBatch.NO_TIMESTAMP, Long.parseLong(words[4]),
            Short.parseShort(words[5]), Integer.parseInt(words[6]), Boolean.parseBoolean(words[7]),
            Integer.parseInt(words[8]));
        for (String text : words[9].split(";")) {
            String[] parts = text.split(",", -1);
            builder.appendWithOffset(
                Long.parseLong(parts[0]), Long.parseLong(parts[1]), bytes(parts[2]), bytes(parts[3]), headers(parts[4]));
        }
        return hex(builder.build());
    }

    // mark COMMIT|ABORT OFFSET TIMESTAMP PRODUCER_ID EPOCH
    private static String mark(String[] words) {
        var marker = new EndTransactionMarker(ControlRecordType.valueOf(words[1]), 0);
        return hex(MemoryRecords.withEndTransactionMarker(
            Long.parseLong(words[2]), Long.parseLong(words[3]), 0, Long.parseLong(words[4]), Short.parseShort(words[5]), marker));
    }

    // clean NOW DELETE_RETENTION OFFSETS_TO_KEEP BATCHES
    private static String clean(String[] words) {
        Set<Long> kept = new HashSet<>();
        for (String offset : words[3].split(",")) {
            kept.add(Long.parseLong(offset));
        }
        var filter = new MemoryRecords.RecordFilter(Long.parseLong(words[1]), Long.parseLong(words[2])) {
            @Override
            protected BatchRetentionResult checkBatchRetention(RecordBatch batch) {
                return new BatchRetentionResult(BatchRetention.RETAIN_EMPTY, batch.isControlBatch());
            }

            @Override
            protected boolean shouldRetainRecord(RecordBatch batch, Record record) {
                return kept.contains(record.offset());
            }
        };
        var room = ByteBuffer.allocate(ROOM_BYTES);
        var result = records(words[4]).filterTo(filter, room, BufferSupplier.NO_CACHING);
        var buffer = result.outputBuffer();
        buffer.flip();
        return HEX.formatHex(Utils.toArray(buffer));
    }

    private static String decode(MemoryRecords records) {
        List<String> batches = new ArrayList<>();
        for (RecordBatch batch : records.batches()) {
            List<String> parts = new ArrayList<>();
            parts.add(String.join(",", List.of(
                "" + batch.isValid(), "" + batch.baseOffset(), "" + batch.lastOffset(), "" + batch.partitionLeaderEpoch(),
                "" + batch.compressionType().id, "" + batch.isTransactional(), "" + batch.isControlBatch(),
                "" + (batch.timestampType() == TimestampType.LOG_APPEND_TIME), "" + batch.deleteHorizonMs().isPresent(),
                "" + batch.maxTimestamp(), "" + batch.producerId(), "" + batch.producerEpoch(), "" + batch.baseSequence(),
                "" + batch.countOrNull())));
            for (Record record : batch) {
                record.ensureValid();
                parts.add(text(record));
            }
            batches.add(String.join(";", parts));
        }
        return String.join("|", batches);
    }

    // validate FIRST_OFFSET COMPACTED BATCH: what a leader would append, or why it would not
    private static String validate(String[] words) {
        MemoryRecords sent = records(words[3]);
        CompressionType codec = sent.batches().iterator().next().compressionType();
        long any = Long.MAX_VALUE;
        var validator = new LogValidator(
            sent, new TopicPartition("orders", 0), Time.SYSTEM, codec, Compression.of(codec).build(),
            Boolean.parseBoolean(words[2]), RecordBatch.CURRENT_MAGIC_VALUE, TimestampType.CREATE_TIME, any, any, 0,
            AppendOrigin.CLIENT);
        var result = validator.validateMessagesAndAssignOffsets(
            PrimitiveRef.ofLong(Long.parseLong(words[1])), new Uncounted(), BufferSupplier.NO_CACHING);
        return hex(result.validatedRecords());
    }

    private record Uncounted() implements LogValidator.MetricsRecorder {
        public void recordInvalidMagic() { }
        public void recordInvalidOffset() { }
        public void recordInvalidSequence() { }
        public void recordInvalidChecksums() { }
        public void recordNoKeyCompactedTopic() { }
    }

    private static MemoryRecords records(String hex) {
        return MemoryRecords.readableRecords(ByteBuffer.wrap(HEX.parseHex(hex)));
    }

    private static String hex(MemoryRecords records) {
        return HEX.formatHex(Utils.toArray(records.buffer()));
    }

    private static byte[] bytes(String hex) {
        return hex.equals("-") ? null : HEX.parseHex(hex);
    }

    private static String hex(ByteBuffer bytes) {
        return bytes == null ? "-" : HEX.formatHex(Utils.toArray(bytes));
    }

    private static Header[] headers(String text) {
        List<Header> headers = new ArrayList<>();
        for (String pair : text.isEmpty() ? new String[0] : text.split("&")) {
            String[] parts = pair.split("=", -1);
            headers.add(new RecordHeader(new String(HEX.parseHex(parts[0]), StandardCharsets.UTF_8), bytes(parts[1])));
        }
        return headers.toArray(new Header[0]);
    }

    private static String text(Record record) {
        List<String> headers = new ArrayList<>();
        for (Header header : record.headers()) {
            byte[] value = header.value();
            headers.add(HEX.formatHex(header.key().getBytes(StandardCharsets.UTF_8)) + "=" + (value == null ? "-" : HEX.formatHex(value)));
        }
        return String.join(",", "" + record.offset(), "" + record.timestamp(), hex(record.key()), hex(record.value()), String.join("&", headers));
    }
}
