// The Java client through all of its doors, one story after the other; each prints a line when it has come true.

import java.time.Duration;
import java.util.*;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.*;

public class Walk {
    static final long PATIENCE_MS = 30_000;
    static String bootstrap;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", (Object) bootstrap))) {
            produceAndConsume(admin, "classic");
            produceAndConsume(admin, "consumer");
            transact(admin);
            share(admin);
            administer(admin);
        }
    }

    static void produceAndConsume(Admin admin, String protocol) throws Exception {
        String topic = "java-" + protocol;
        admin.createTopics(List.of(new NewTopic(topic, 3, (short) 1))).all().get();
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            try (Producer<String, String> producer = producer(Map.of("compression.type", codec))) {
                for (int number = 0; number < 20; number++) producer.send(new ProducerRecord<>(topic, codec + number, codec));
            }
        }
        Map<String, Object> settings = new HashMap<>(Map.of("group.id", topic, "group.protocol", protocol));
        Set<String> keys = new HashSet<>();
        try (Consumer<String, String> consumer = consumer(settings)) {
            consumer.subscribe(List.of(topic));
            long end = System.currentTimeMillis() + PATIENCE_MS;
            while (keys.size() < 100 && System.currentTimeMillis() < end)
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) keys.add(record.key());
            consumer.commitSync();
        }
        check(keys.size() == 100, "consumed " + keys.size());
        long committed = admin.listConsumerGroupOffsets(topic).partitionsToOffsetAndMetadata().get().values().stream()
            .mapToLong(OffsetAndMetadata::offset).sum();
        check(committed == 100, "committed " + committed);
        System.out.println(protocol + " ok");
    }

    static void transact(Admin admin) throws Exception {
        admin.createTopics(List.of(new NewTopic("java-in", 1, (short) 1), new NewTopic("java-out", 1, (short) 1))).all().get();
        TopicPartition in = new TopicPartition("java-in", 0);
        try (Producer<String, String> producer = producer(Map.of("transactional.id", "java-walk"))) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>("java-out", "lost", "lost"));
            producer.flush();
            producer.abortTransaction();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>("java-out", "kept", "kept"));
            producer.sendOffsetsToTransaction(Map.of(in, new OffsetAndMetadata(7)), new ConsumerGroupMetadata("java-txn"));
            producer.commitTransaction();
        }
        List<String> seen = new ArrayList<>();
        try (Consumer<String, String> consumer = consumer(Map.of("isolation.level", "read_committed"))) {
            TopicPartition out = new TopicPartition("java-out", 0);
            consumer.assign(List.of(out));
            consumer.seekToBeginning(List.of(out));
            long end = System.currentTimeMillis() + PATIENCE_MS;
            while (seen.isEmpty() && System.currentTimeMillis() < end)
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) seen.add(record.key());
        }
        check(seen.equals(List.of("kept")), "read " + seen);
        long offset = admin.listConsumerGroupOffsets("java-txn").partitionsToOffsetAndMetadata().get().get(in).offset();
        check(offset == 7, "offset " + offset);
        System.out.println("transactions ok");
    }

    static void share(Admin admin) throws Exception {
        admin.createTopics(List.of(new NewTopic("java-share", 2, (short) 1))).all().get();
        ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, "java-sharers");
        AlterConfigOp early = new AlterConfigOp(new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(group, List.of(early))).all().get();
        try (Producer<String, String> producer = producer(Map.of())) {
            for (int number = 0; number < 50; number++) producer.send(new ProducerRecord<>("java-share", "k" + number, "v"));
        }
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "group.id", "java-sharers");
        Set<String> keys = new HashSet<>();
        try (KafkaShareConsumer<String, String> consumer =
                new KafkaShareConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of("java-share"));
            long end = System.currentTimeMillis() + PATIENCE_MS;
            while (keys.size() < 50 && System.currentTimeMillis() < end) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(500))) keys.add(record.key());
                consumer.commitSync();
            }
        }
        check(keys.size() == 50, "shared " + keys.size());
        System.out.println("share ok");
    }

    static void administer(Admin admin) throws Exception {
        check(admin.describeCluster().nodes().get().size() == 1, "nodes");
        TopicDescription described = admin.describeTopics(List.of("java-share")).allTopicNames().get().get("java-share");
        check(described.partitions().size() == 2, "partitions " + described);
        admin.createPartitions(Map.of("java-share", NewPartitions.increaseTo(3))).all().get();
        check(admin.listGroups().all().get().size() >= 3, "groups");
        check(!admin.describeLogDirs(List.of(1)).allDescriptions().get().get(1).isEmpty(), "log dirs");
        check(admin.describeMetadataQuorum().quorumInfo().get().leaderId() == 1, "quorum");
        admin.deleteRecords(Map.of(new TopicPartition("java-share", 0), RecordsToDelete.beforeOffset(1))).all().get();
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, "java-share");
        AlterConfigOp both = new AlterConfigOp(new ConfigEntry("cleanup.policy", "compact"), AlterConfigOp.OpType.APPEND);
        admin.incrementalAlterConfigs(Map.of(topic, List.of(both))).all().get();
        String policy = admin.describeConfigs(List.of(topic)).all().get().get(topic).get("cleanup.policy").value();
        check(Set.of(policy.split(",")).equals(Set.of("compact", "delete")), policy);
        admin.deleteConsumerGroups(List.of("java-classic")).all().get();
        admin.deleteTopics(List.of("java-share")).all().get();
        System.out.println("admin ok");
    }

    static Producer<String, String> producer(Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "acks", "all"));
        settings.putAll(more);
        return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
    }

    static Consumer<String, String> consumer(Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", bootstrap, "auto.offset.reset", "earliest"));
        settings.putAll(more);
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    static void check(boolean isTrue, String told) {
        if (!isTrue) throw new AssertionError(told);
    }
}
