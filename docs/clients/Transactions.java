import java.sql.Connection;
import java.sql.SQLException;
import java.util.Set;

/** Runs work in a transaction, again if it conflicts with another one. */
public class Transactions {
    private static final Set<String> CONFLICTS = Set.of("40001", "40P01");

    public interface Work<T> {
        T run(Connection db) throws SQLException;
    }

    public static <T> T run(Connection db, Work<T> work) throws SQLException {
        db.setAutoCommit(false);
        try {
            for (int left = 10;; left--) {
                try {
                    T result = work.run(db);
                    db.commit();
                    return result;
                } catch (SQLException e) {
                    db.rollback();
                    if (left == 1 || !CONFLICTS.contains(e.getSQLState())) {
                        throw e;
                    }
                }
            }
        } finally {
            db.setAutoCommit(true);
        }
    }
}
