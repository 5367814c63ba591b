import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import javax.net.SocketFactory;

/** Leads a driver that knows only TCP to the socket of a private server; no port stays open. */
public class UnixSocket extends SocketFactory {
    private final String path;

    public UnixSocket(String path) {
        this.path = path;
    }

    @Override
    public Socket createSocket() throws IOException {
        try (ServerSocket listener = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            Socket socket = new Socket(listener.getInetAddress(), listener.getLocalPort());
            Socket client = listener.accept();
            if (client.getPort() != socket.getLocalPort()) {
                throw new IOException("another program connected");
            }
            SocketChannel server = SocketChannel.open(UnixDomainSocketAddress.of(path));
            pump(() -> {
                ByteBuffer bytes = ByteBuffer.allocate(65536);
                while (server.read(bytes) >= 0) {
                    client.getOutputStream().write(bytes.array(), 0, bytes.position());
                    bytes.clear();
                }
                client.close();
            });
            pump(() -> {
                byte[] bytes = new byte[65536];
                for (int n; (n = client.getInputStream().read(bytes)) >= 0;) {
                    ByteBuffer rest = ByteBuffer.wrap(bytes, 0, n);
                    while (rest.hasRemaining()) {
                        server.write(rest);
                    }
                }
                server.close();
            });
            return socket;
        }
    }

    private interface Pump {
        void run() throws IOException;
    }

    private static void pump(Pump pump) {
        Thread thread = new Thread(() -> {
            try {
                pump.run();
            } catch (IOException e) {
                // one side is closed
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    @Override
    public Socket createSocket(String host, int port) throws IOException {
        return createSocket();
    }

    @Override
    public Socket createSocket(String host, int port, InetAddress from, int fromPort)
            throws IOException {
        return createSocket();
    }

    @Override
    public Socket createSocket(InetAddress host, int port) throws IOException {
        return createSocket();
    }

    @Override
    public Socket createSocket(InetAddress host, int port, InetAddress from, int fromPort)
            throws IOException {
        return createSocket();
    }
}
