import java.nio.ByteBuffer;
import org.bson.BsonBinaryReader;
import org.bson.BsonBinaryWriter;
import org.bson.Document;
import org.bson.codecs.DecoderContext;
import org.bson.codecs.DocumentCodec;
import org.bson.codecs.EncoderContext;
import org.bson.io.BasicOutputBuffer;
import org.bson.json.JsonMode;
import org.bson.json.JsonWriterSettings;
import org.postgresql.util.PGobject;

/** A document of docpatterns in JDBC, as a parameter and as a result. */
public class Bson extends PGobject {
    private static final long serialVersionUID = 1L;
    private static final DocumentCodec CODEC = new DocumentCodec();
    private static final JsonWriterSettings JSON =
        JsonWriterSettings.builder().outputMode(JsonMode.EXTENDED).build();

    /** Used by the driver, which then calls setValue(). */
    public Bson() {
        type = "bson";
    }

    public Bson(Document document) {
        this();
        value = document.toJson(JSON);
    }

    public Document document() {
        return Document.parse(value);
    }

    /** The bytes of a document, for COPY and columns of type bytea. */
    public static byte[] encode(Document document) {
        BasicOutputBuffer bytes = new BasicOutputBuffer();
        CODEC.encode(new BsonBinaryWriter(bytes), document, EncoderContext.builder().build());
        return bytes.toByteArray();
    }

    public static Document decode(byte[] bytes) {
        return CODEC.decode(new BsonBinaryReader(ByteBuffer.wrap(bytes)),
            DecoderContext.builder().build());
    }
}
