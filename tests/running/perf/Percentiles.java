// HdrHistogram's own percentiles, asked line by line: "PERCENT,PERCENT,... VALUE VALUE ...". An answer is
// what a histogram of three significant digits says of these values at each percentage.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.stream.Collectors;
import org.HdrHistogram.Histogram;

public class Percentiles {
    public static void main(String[] args) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        var out = new StringBuilder();
        for (var line = in.readLine(); line != null; line = in.readLine()) {
            out.append(answer(line.split(" "))).append('\n');
        }
        System.out.print(out);
    }

    private static String answer(String[] words) {
        var histogram = new Histogram(3);
        Arrays.stream(words).skip(1).mapToLong(Long::parseLong).forEach(histogram::recordValue);
        return Arrays.stream(words[0].split(","))
            .map(percent -> Long.toString(histogram.getValueAtPercentile(Double.parseDouble(percent))))
            .collect(Collectors.joining(" "));
    }
}
