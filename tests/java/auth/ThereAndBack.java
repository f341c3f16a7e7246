import java.io.FileInputStream;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Writes messages to a topic, one after the other, and reads them back: `properties topic count pauseMs`. */
public class ThereAndBack {
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        try (FileInputStream file = new FileInputStream(arguments[0])) {
            properties.load(file);
        }
        String topic = arguments[1];
        int count = Integer.parseInt(arguments[2]);
        properties.put("group.id", "java");
        properties.put("auto.offset.reset", "earliest");
        properties.put("delivery.timeout.ms", "20000");
        properties.put("request.timeout.ms", "10000");
        properties.put("max.block.ms", "15000");
        StringSerializer writer = new StringSerializer();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(properties, writer, writer)) {
            for (int number = 0; number < count; number++) {
                producer.send(new ProducerRecord<>(topic, "message " + number)).get();
                Thread.sleep(Long.parseLong(arguments[3]));
            }
        }
        StringDeserializer reader = new StringDeserializer();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(properties, reader, reader)) {
            consumer.subscribe(List.of(topic));
            int read = 0;
            long deadline = System.nanoTime() + 30_000_000_000L;
            while (read < count && System.nanoTime() < deadline) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(500))) {
                    System.out.println("read " + record.value());
                    read++;
                }
            }
        }
    }
}
